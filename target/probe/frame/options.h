/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line, by tables: common options here, a probe's own in its file. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_CPUS 1024

enum option_kind {
	OPTION_FLAG,     /* bool */
	OPTION_SET,      /* int, set to .low: a letter that stands for one value */
	OPTION_INTEGER,  /* int64_t */
	OPTION_DURATION, /* int64_t in ns; .plain is the unit of a bare number */
	OPTION_CHOICE,   /* int, index into .choices */
	OPTION_TEXT,     /* const char * */
	OPTION_CPUS,     /* struct cpu_list */
};

struct option_spec {
	const char *name; /* long name without dashes; NULL ends a table */
	char letter;      /* 0 where there is none */
	enum option_kind kind;
	void *target;
	int64_t low, high;    /* smallest and greatest value allowed; a text may not be empty */
	int64_t plain;        /* durations: unit of a bare number in ns */
	const char *plain_name;
	const char *const *choices; /* ended by NULL */
	const char *optional; /* value to use when none is given */
	bool acts;            /* applies only to probes with acts of their own, not to those that watch */
	const char *help;
};

struct cpu_list {
	int count;
	bool except; /* until resolved: the CPUs to exclude from the usable ones */
	int cpu[MAX_CPUS];
};

enum policy { POLICY_FIFO, POLICY_RR, POLICY_DEADLINE, POLICY_OTHER, POLICIES };
extern const char *const policy_names[POLICIES + 1];

/* Of dma_latency_us: leave it alone; hold 0 where the kernel knows it. */
#define LATENCY_UNTOUCHED (-1)
#define LATENCY_DEFAULT (-2)
/* Of deepest_idle_state; -1 means none but polling. */
#define IDLE_STATE_ANY (-2)

/* Settings of every probe, from the command line. */
struct settings {
	int policy;             /* enum policy; -1: the probe's own default */
	int64_t priority;       /* 0: not requested */
	int64_t interval_ns;    /* of periodic acts */
	int64_t duration_ns;    /* 0: until something else ends the run */
	int64_t warm_up_ns;     /* acts before the start of counting */
	int64_t loops;          /* acts per worker, 0: no limit */
	bool until_interrupt;   /* SIGINT is the planned end: the run is completed, not aborted */
	struct cpu_list cpus;
	struct cpu_list housekeeping; /* of the reporter; none: any */
	const char *cgroup;     /* that this process joins, NULL for none */
	const char *thread_name; /* NULL: that of the program */
	int64_t threads;        /* 0: one per chosen CPU */
	int64_t runtime_ns, deadline_ns; /* --policy deadline; 0: from the interval */
	int64_t threshold_ns;   /* 0: none */
	bool stop_at_threshold;
	const char *trace_switch; /* file to write 0 into just before that, NULL for none */
	int64_t limit_ns;       /* counted exactly, with its runs; 0: none */
	bool lock_memory;
	int64_t dma_latency_us; /* LATENCY_UNTOUCHED, LATENCY_DEFAULT, or what is held */
	int64_t deepest_idle_state; /* that dma_latency_us follows from; IDLE_STATE_ANY: none */
	int64_t timer_slack_ns;
	bool allow_difference;
	int64_t report_ns;      /* length of an interval line */
	int64_t interval_k;     /* 2^k buckets per octave in interval lines */
	int64_t histogram_us;   /* 0: none; else print the histogram up to this */
	bool histogram_sum;     /* with a column for all series together */
	const char *histogram_file; /* instead of standard output */
	bool nsecs;             /* times are printed in whole ns */
	bool quiet, json;
	const char *record;     /* file, "-" for standard output, NULL for none */
	const char *run_id;
	const char *ring;       /* folder of recordings one after the other; NULL: none */
	int64_t ring_keep_ns;   /* how long a recording stays there */
	int64_t ring_mib;       /* maximum size of all of them */
	int64_t ring_cycle_ns;  /* length of a recording there */
};

struct probe;

/* Reads the command line.  Prints help, version and lists itself and exits; exits 2 on wrong usage. */
const struct probe *options_parse(int argc, char **argv, struct settings *settings);

/* One line on standard error that says what is wrong and how to fix it; exits with status 2.
 * A probe undoes changes outside its process in an at_quick_exit() handler. */
void bad_input(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
