/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame: all that probes have in common, so that a probe owns only its timed act.
 *
 * A probe's setup() adds series and workers.  The frame starts the workers, gives them policy,
 * priority, affinity, locked memory and a pre-faulted stack, reads back what is in effect, lets them go
 * at one instant, records what they measure, and ends the run: by duration, by --loops, when all
 * workers have returned, by a signal, or because something failed.
 *
 *	static void my_worker(struct worker *self, void *argument)
 *	{
 *		struct my_act *act = argument;
 *
 *		while (run_continues(self)) {
 *			int64_t begin_ns = mono_ns();
 *			... the act ...
 *			series_add(act->series, mono_ns() - begin_ns);
 *		}
 *	}
 *
 * A worker may block as long as it likes if the blocking call returns EINTR: at the end of the run
 * every worker is sent a signal, again and again, until it has returned; it may take a period of its own for that.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "options.h"
#include "samples.h"
#include "series.h"

struct run;
struct worker;

/* One kind of timed act.  Its line in acts/meson.build makes it known. */
struct probe {
	const char *name;
	const char *summary;                /* one line for --help */
	bool watches;                       /* acts of other programs: nothing is requested of the machine for them */
	const struct option_spec *options;  /* its own, ended by an empty one; may be NULL */
	void (*setup)(struct run *run);
};

typedef void (*worker_function)(struct worker *self, void *argument);

struct worker_spec {
	const char *name;
	int cpu;              /* -1: any of the chosen CPUs */
	int priority_offset;  /* added to --priority; 0 as a rule */
	bool ordinary;        /* SCHED_OTHER whatever --policy says: disturbers, not measurers */
	int64_t period_ns;    /* for --policy deadline; 0: --interval */
	uint64_t keeps;       /* the capabilities that its function needs, as a mask */
	worker_function function;
	void *argument;
};

/*
 * For setup() ------------------------------------------------------------------------------------
 */

const struct settings *run_settings(const struct run *run);

/* The CPU of the n-th thread asked for, and how many threads were asked for (--affinity, --threads). */
int run_cpu(const struct run *run, int index);
int run_threads(const struct run *run);
/* A chosen CPU other than this one, or -1 where there is none. */
int run_other_cpu(const struct run *run, int cpu);

/* Memory for the length of the run, zeroed; locked with the rest. */
void *run_allocate(struct run *run, size_t size);

struct series *run_add_series(struct run *run, const struct series_spec *spec);
/* A ring for the samples of a series, which the frame writes into the file of run_keep_samples(). */
struct samples *run_add_samples(struct run *run, const struct series *series);
void run_keep_samples(struct run *run, const char *path);

struct worker *run_add_worker(struct run *run, const struct worker_spec *spec);

/* What the head's `parameters` say beside the common ones. */
void run_parameter_text(struct run *run, const char *name, const char *value);
void run_parameter_int(struct run *run, const char *name, int64_t value);

/* The board is the only witness of this act, where an instrument could be: the head says so. */
void run_self_measured(struct run *run);

/* This cannot be measured here: the run ends with that outcome and this reason.  Then return. */
void run_not_applicable(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * For workers ------------------------------------------------------------------------------------
 */

/* Whether to do one more act; counts it for --loops. */
bool run_continues(struct worker *self);

/* The same without counting, for inner loops. */
bool run_going(const struct worker *self);

/* Whether the run was ended before this worker had done its --loops: then due times that have passed are not done yet. */
bool run_ended_early(const struct worker *self);

struct run *worker_run(const struct worker *self);

/* The instant at which all workers begin, CLOCK_MONOTONIC. */
int64_t run_start_ns(const struct run *run);

/* The first due time after the start of a grid that begins OFFSET after the begin in the head.  It may have passed: the
 * worker was ready at the start, and a worker that first runs later is late. */
int64_t run_first_due_ns(const struct run *run, int64_t offset_ns, int64_t period_ns);

/* End the run: completed, or failed with a reason (the first reason stays).  Safe in workers. */
void run_finish(struct run *run);
void run_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * For main() -------------------------------------------------------------------------------------
 */

struct run *run_new(const struct probe *probe, const struct settings *settings);
void run_prepare(struct run *run); /* the probe's setup(), where this machine has what the platform needs */
int run_execute(struct run *run);  /* the exit status */

#endif
