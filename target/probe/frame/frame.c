/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a run, from its probe's setup to the exit status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "periodic.h"
#include "run.h"
#include "source.h"
#include "rotation.h"

/* Workers receive this many stop signals, this far apart, before they count as stuck.  Counted in tries, not in time: after
 * a pause of the whole machine its workers are not stuck. */
#define STOP_TRIES 1000
#define STOP_RETRY_NS (5 * NS_PER_MS)
/* Period of the reporter's check that all workers are ready, in case their signal is lost. */
#define READY_POLL_NS (100 * NS_PER_MS)

struct instant instant_now(void)
{
	int64_t now_ns = mono_ns();

	return (struct instant){now_ns, now_ns + wall_offset_ns()};
}

/* Other tasks may keep a thread off its CPU without limit: a signal ends the wait. */
static void start_workers(struct run *run)
{
	pthread_barrier_init(&run->go, NULL, (unsigned)run->worker_count + 1);
	for_each_worker(worker, run)
		worker_start(worker);
	while (atomic_load(&run->workers_ready) < run->worker_count && !atomic_load(&run->stop))
		signals_await(mono_ns() + READY_POLL_NS);
}

static void release_workers(struct run *run)
{
	machine_read(run, &run->at_start);
	run->at_begin = run->at_start;
	pthread_barrier_wait(&run->go);
	run_begin_at_start(run);
}

static void begin_recording(struct run *run)
{
	record_open(run);
	samples_open(run);
	histogram_open(run);
	run_announce(run);
	record_head(run);
	if (run->rotation)
		rotation_head_written(run);
}

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void report_until_end(struct run *run, timer_t watchdog)
{
	int64_t begin_ns = run->counted_ns, live_ns = live_period_ns(run);
	int64_t end_ns = run->settings->duration_ns ? begin_ns + run->settings->duration_ns : INT64_MAX;
	int64_t next_interval_ns = begin_ns + run->settings->report_ns;
	int64_t next_live_ns = live_ns ? begin_ns + live_ns : INT64_MAX;
	int64_t next_drain_ns = run->samples ? begin_ns + samples_drain_period_ns(run) : INT64_MAX;
	int64_t next_poll_ns = run->source && run->source->poll ? begin_ns + run->source->poll_ns : INT64_MAX;

	while (!atomic_load(&run->stop) && !(run_all_done(run) && !run->source)) {
		int64_t until_ns = earliest(earliest(end_ns, earliest(next_drain_ns, next_poll_ns)),
					    earliest(next_interval_ns, next_live_ns));
		bool reached;

		watchdog_feed(watchdog, until_ns - mono_ns() + rotation_write_limit_ns(run));
		signals_await(until_ns);
		reached = mono_ns() >= end_ns;
		if (reached)
			run_stop(run, OUTCOME_COMPLETED);
		if (!reached && mono_ns() >= next_interval_ns) {
			rotation_interval(run);
			next_interval_ns = fe_due_after(next_interval_ns, mono_ns(), run->settings->report_ns);
		}
		if (!reached && mono_ns() >= next_live_ns) {
			live_draw(run);
			next_live_ns = fe_due_after(next_live_ns, mono_ns(), live_ns);
		}
		if (mono_ns() >= next_poll_ns) {
			run->source->poll(run);
			next_poll_ns = fe_due_after(next_poll_ns, mono_ns(), run->source->poll_ns);
		}
		if (mono_ns() >= next_drain_ns) {
			samples_drain(run);
			next_drain_ns = fe_due_after(next_drain_ns, mono_ns(), samples_drain_period_ns(run));
		}
	}
}

/* A worker may complete its current act, which ends at the next due time. */
static int64_t stop_tries(const struct run *run)
{
	int64_t longest_ns = 0;

	for_each_worker(worker, run)
		if (worker->spec.period_ns > longest_ns)
			longest_ns = worker->spec.period_ns;
	return STOP_TRIES + longest_ns / STOP_RETRY_NS;
}

static void stop_workers(struct run *run)
{
	atomic_store(&run->stop, true);
	for (int64_t tries = stop_tries(run); !run_all_done(run) && tries > 0; tries--) {
		for_each_worker(worker, run)
			worker_kick(worker);
		signals_await(mono_ns() + STOP_RETRY_NS);
	}
	for_each_worker(worker, run)
		if (!atomic_load(&worker->done))
			run_fail(run, "thread %s on CPU %d did not stop in time", worker->spec.name, worker->spec.cpu);
}

static int exit_status(const struct run *run)
{
	static const int statuses[] = {
		[OUTCOME_COMPLETED] = STATUS_DONE,
		[OUTCOME_FAILED] = STATUS_FAILED,
		[OUTCOME_NOT_APPLICABLE] = STATUS_NOT_APPLICABLE,
	};

	return run->outcome == OUTCOME_ABORTED ? STATUS_SIGNAL + run->signal : statuses[run->outcome];
}

/* One line, to a terminal or pipe whose reader may have stopped. */
static void print_reason(const struct run *run)
{
	bool also = run->outcome == OUTCOME_ABORTED && *run->write_error;
	char text[3 * REASON_SIZE];
	int error, size;

	size = snprintf(text, sizeof(text), PROGRAM ": %s: %s%s%s\n", outcome_names[run->outcome], run->reason,
			also ? "; " : "", also ? run->write_error : "");
	output_write(STDERR_FILENO, text, (size_t)size, &error);
}

static int conclude(struct run *run)
{
	record_end(run);
	if (run->rotation)
		rotation_close(run);
	summary_print(run);
	if (run->outcome != OUTCOME_COMPLETED)
		print_reason(run);
	/* Also ends threads that did not stop. */
	quick_exit(exit_status(run));
}

/* A run without an act contains no data, so it fails.  A probe that watches others may legitimately have seen none. */
static void require_acts(struct run *run)
{
	uint64_t taken = 0;

	for_each_series(entry, run)
		taken += entry->series->total.count + entry->series->total_lost;
	if (!taken && !run->probe->watches && atomic_load(&run->outcome) == OUTCOME_COMPLETED)
		run_fail(run, "no act took place during the run; measure for longer, or check what should have started one");
}

static void measure(struct run *run)
{
	timer_t watchdog;

	start_workers(run);
	if (atomic_load(&run->stop))
		return;
	settings_read_before(run);
	machine_open(run);
	settings_remember(run);
	begin_recording(run);
	release_workers(run);
	run_await_start(run);
	watchdog = watchdog_start();
	warm_up(run, watchdog);
	/* A worker still running would add values to the counted epoch. */
	if (atomic_load(&run->stop))
		stop_workers(run);
	count_from_now(run);
	thread_drop_capabilities(run->source ? run->source->capabilities : 0);
	report_until_end(run, watchdog);
	timer_delete(watchdog);
	stop_workers(run);
	run->settings_after.count = 0;
	settings_read_after(run);
	settings_compare(run);
	if (run->source && run->source->stop)
		run->source->stop(run);
	record_interval(run, true);
	samples_close(run);
	require_acts(run);
	if (run->source && run->source->settings_after)
		run->source->settings_after(run);
}

static void skip(struct run *run)
{
	machine_open(run);
	begin_recording(run);
	run->start_ns = run->counted_ns = run->announced_ns;
	machine_read(run, &run->at_start);
	run->at_begin = run->at_start;
}

void run_prepare(struct run *run)
{
	const char *absent = platform_unavailable();

	if (absent)
		run_not_applicable(run, "%s cannot run here: %s", platform_name, absent);
	else
		run->probe->setup(run);
}

int run_execute(struct run *run)
{
	signals_prepare(run);
	if (run->outcome == OUTCOME_NOT_APPLICABLE) {
		skip(run);
	} else {
		cost_measure(run);
		measure(run);
	}
	return conclude(run);
}
