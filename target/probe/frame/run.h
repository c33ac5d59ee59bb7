/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a run, for the files of the frame; probes use frame.h. */
#ifndef RUN_H
#define RUN_H

#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "cpu_list.h"
#include "frame.h"
#include "json.h"
#include "machine.h"
#include "output.h"
#include "samples.h"
#include "thread.h"

#define MAX_SETTINGS 4096
#define REASON_SIZE 256

/* Exit statuses, the same as the bench's. */
enum {
	STATUS_DONE = 0,
	STATUS_BAD_INPUT = 2,
	STATUS_FAILED = 4,
	STATUS_NOT_APPLICABLE = 5,
	STATUS_SIGNAL = 128 /* and the number of the signal that ended the run */
};

enum outcome { OUTCOME_COMPLETED, OUTCOME_FAILED, OUTCOME_ABORTED, OUTCOME_NOT_APPLICABLE };
extern const char *const outcome_names[];

struct instant {
	int64_t mono_ns, wall_ns;
};

struct worker {
	struct run *run;
	struct worker_spec spec;
	int priority; /* requested */
	pthread_t thread;
	pid_t tid;
	void *stack;
	struct thread_state before, after; /* its first act, and its last: set before done */
	int64_t migrations_before;
	int64_t mode_switches_before, mode_switches; /* of its thread to Linux: before its first act, after its last; -1: not known */
	int64_t acts;
	int sched_fd;
	int64_t cpu_ns; /* at the last comparison with the granted time */
	int64_t ended_ns, cpu_end_ns; /* after its last act: set before done */
	int64_t migrations; /* set before done; -1: cannot be read */
	_Atomic bool done;
	struct worker *next;
};

struct series_entry {
	struct series *series;
	struct series_entry *next;
};

/* One setting; requested and in_effect are JSON. */
struct setting {
	const char *name;
	int cpu;         /* of the thread; -1: none, or of the whole run */
	char thread[16]; /* empty: of the whole run */
	char *requested, *in_effect;
	char reason[REASON_SIZE]; /* empty where there is nothing to explain */
	bool differs, real_time;  /* real_time: without it the run is not a real-time one */
};

struct settings_read {
	struct setting *list;
	int count, most;
};

/* The live view: the last picture, which a slow terminal may have taken in part only. */
struct screen {
	char *text;
	size_t size, written;
	int lines;
};

struct run {
	const struct probe *probe;
	const struct settings *settings;
	char run_id[64];
	struct json parameters;
	bool self_measured;
	struct series_entry *series, **series_end;
	int series_count;
	struct worker *workers, **workers_end;
	int worker_count;
	struct source *source; /* NULL: workers act; else values come from outside */
	struct settings_read settings_before, settings_after; /* its first act, and its last */
	int dma_latency_fd; /* held open: closing it ends the hold; -1: not held */
	int trace_fd; /* the switch of a trace of the kernel; -1: none */

	int lock_error; /* errno of the first memory that could not be locked */
	pthread_t reporter;
	pthread_barrier_t go;
	struct machine machine;
	int64_t clock_read_ns_thousandths, record_ns_thousandths;
	int64_t clock_step_ns; /* 0: not known */
	int64_t announced_ns;     /* the begin in the head, and the origin of all grids of due times */
	_Atomic int64_t start_ns; /* 0 until the first worker is released; never before announced_ns */
	int64_t counted_ns;       /* start of counting: the start, or the end of the warm-up; 0 before */
	struct instant begin; /* of the current interval */
	struct counters at_start, at_begin;
	char online[CPU_LIST_SIZE]; /* CPUs, as the kernel lists them */
	uint64_t seq;
	uint64_t events, events_dropped;

	_Atomic bool stop;
	_Atomic int workers_ready, workers_done;
	_Atomic int outcome;
	_Atomic bool reason_taken;
	char reason[REASON_SIZE];
	_Atomic bool reason_written;
	int signal; /* the first that requested the end; 0: none */
	char write_error[REASON_SIZE]; /* what could not be written, and why */

	int record_fd; /* -1: none */
	bool record_owned; /* a regular file that this run created or found empty: it may be truncated */
	bool record_broken;
	int64_t recorded_bytes; /* up to the end of the last whole line */
	struct rotation *rotation;    /* NULL: no ring */
	struct samples *samples; /* NULL: none are recorded */
	const char *samples_path;
	int samples_fd;          /* -1: none, or closed after an error */
	int histogram_fd;        /* -1: none */
	struct json line;
	struct screen screen;
};

#define for_each_series(entry, run) for (struct series_entry *entry = (run)->series; entry; entry = entry->next)
#define for_each_worker(worker, run) for (struct worker *worker = (run)->workers; worker; worker = worker->next)

struct instant instant_now(void);

static inline bool run_all_done(const struct run *run)
{
	return atomic_load(&run->workers_done) == run->worker_count;
}

/* setup.c: the name that the options give, or one made from the time */
void run_name(struct run *run);

/* Locks memory that workers touch, if locking is requested. */
void run_lock(struct run *run, const void *memory, size_t size);

/* start.c: the start, and the warm-up */
void run_announce(struct run *run);       /* before the head is written */
void run_set_start(struct run *run);      /* by each thread when released; the first sets it for all */
void run_begin_at_start(struct run *run); /* the same; the first interval begins there */
void run_await_start(const struct run *run);

/* The first reason stays. */
void run_stop(struct run *run, enum outcome outcome);
void run_abort(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An output cannot be written: the run fails, or is aborted if a signal interrupted the write. */
void run_write_failed(struct run *run, const char *what, int error);

/* Waits for the end of the warm-up, or of the run; then counting begins. */
void warm_up(struct run *run, timer_t watchdog);
void count_from_now(struct run *run);

/* signals.c */
void signals_prepare(struct run *run);
void signals_await(int64_t until_ns);       /* or until a signal arrives, and accepts it */
int signals_taken(int64_t *first_ns);       /* accepts pending ones; the number of requests to end so far */
timer_t watchdog_start(void);
void watchdog_feed(timer_t watchdog, int64_t within_ns);

/* worker.c */
void worker_start(struct worker *worker);
void worker_kick(struct worker *worker);

/* settings.c: what was requested, and what is in effect */
void settings_read_before(struct run *run); /* bad input if a required setting is not in effect */
void settings_read_after(struct run *run);
bool settings_real_time(const struct run *run);

/* Fails a run whose threads' settings changed while it ran. */
void settings_remember(struct run *run);
void settings_compare(struct run *run);
/* The settings at the end of a recording are those at the begin of the next one. */
void settings_restart(struct run *run);

/* record.c */
void record_open(struct run *run);
void record_head(struct run *run);
/* `last`: the recording ends with it. */
void record_interval(struct run *run, bool last);
void record_event(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		  const char *text);
/* An event of a source, recorded at once. */
void record_source_event(struct run *run, struct series *series, const struct event *event);
void record_end(struct run *run);
/* Members that recording and summary share. */
void json_stats(struct json *json, const struct fe_stats *stats);
void json_counters(struct json *json, const struct counters *counters);
void json_counter_members(struct json *json, const struct counters *counters);
void json_labels(struct json *json, const struct series_label *labels);
void json_reasons(struct json *json, const struct run *run);

/* live.c */
int64_t live_period_ns(const struct run *run); /* 0: no live view */
void live_draw(struct run *run);
int live_table(const struct run *run, FILE *out, bool with_silent); /* prints it; returns the number of lines */

/* histogram.c */
void histogram_open(struct run *run);                       /* the file, if one is named */
bool histogram_is_printed(const struct run *run);           /* if none is */
void histogram_print(FILE *out, const struct run *run);     /* where it is printed */
void histogram_write(struct run *run);                      /* into the file */

/* summary.c */
void summary_print(struct run *run);

/* cost.c */
void cost_measure(struct run *run);

#endif
