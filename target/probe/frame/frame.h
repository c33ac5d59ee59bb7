/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame: everything that probes have in common.  A probe contains only its timed act.
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
 * A worker may block without limit if the blocking call returns EINTR: at the end of the run every worker receives
 * signals until it returns; it may take one of its periods for that.
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
	bool watches;                       /* measures other programs: no real-time settings are requested */
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
	uint64_t capabilities;       /* required by its function, as a mask */
	worker_function function;
	void *argument;
};

/*
 * For setup() ------------------------------------------------------------------------------------
 */

const struct settings *run_settings(const struct run *run);

/* CPU of the n-th requested thread, and the number of requested threads (--affinity, --threads). */
int run_cpu(const struct run *run, int index);
int run_threads(const struct run *run);
/* A chosen CPU other than this one; -1 if there is none. */
int run_other_cpu(const struct run *run, int cpu);

/* Memory for the length of the run, zeroed; locked with the rest. */
void *run_allocate(struct run *run, size_t size);

struct series *run_add_series(struct run *run, const struct series_spec *spec);
/* A ring for the samples of a series; the frame writes them into the file of run_record_samples(). */
struct samples *run_add_samples(struct run *run, const struct series *series);
void run_record_samples(struct run *run, const char *path);

struct worker *run_add_worker(struct run *run, const struct worker_spec *spec);

/* Parameters of this probe, for the head's `parameters`. */
void run_parameter_text(struct run *run, const char *name, const char *value);
void run_parameter_int(struct run *run, const char *name, int64_t value);

/* Marks a measurement by the board alone that an instrument could make; stored in the head. */
void run_self_measured(struct run *run);

/* Ends the run as not applicable, with this reason; setup() then returns. */
void run_not_applicable(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * For workers ------------------------------------------------------------------------------------
 */

/* Whether another act follows; counts it for --loops. */
bool run_continues(struct worker *self);

/* The same without counting, for inner loops. */
bool run_is_active(const struct worker *self);

/* Whether the run ended before this worker completed its --loops; earlier due times then still need their acts. */
bool run_ended_early(const struct worker *self);

struct run *worker_run(const struct worker *self);

/* The instant at which all workers begin, CLOCK_MONOTONIC. */
int64_t run_start_ns(const struct run *run);

/* The first due time, after the start, of a grid that begins OFFSET after the begin in the head.  It may be in the past: a
 * worker that first runs after it is late. */
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
