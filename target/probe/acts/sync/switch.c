/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * switch: latency from one thread yielding the CPU to another one of the same priority running on it.
 *
 * The first thread sleeps until a due time, wakes the second, and then both yield to each other for a burst.  Only the
 * thread with the baton passes it on, so a yield that returns to its caller is not counted as a switch.
 */
#include "waiting.h"
#include "placement.h"
#include "sync.h"
#include "watch.h"

enum { FIRST, SECOND, NOBODY };

static struct {
	int64_t burst;
} chosen = {.burst = 100};

static struct {
	sync_semaphore begun; /* a burst */
	_Atomic int baton;
	_Atomic uint64_t passes;
	_Atomic int64_t yielded_ns;
	struct series *series;
	struct watch watch;
} state = {.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .members = 2}};

static const struct option_spec switch_options[] = {
	{"burst", 0, OPTION_INTEGER, &chosen.burst, .low = 1, .high = 10000, .help = "acts in a row per --interval (100)"},
	TIMEOUT_OPTION(state.watch),
	{0},
};

static void pass_to(int thread)
{
	atomic_store_explicit(&state.passes, atomic_load_explicit(&state.passes, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&state.yielded_ns, mono_ns(), memory_order_relaxed);
	atomic_store_explicit(&state.baton, thread, memory_order_release);
}

/* Yields until this thread has the baton, or the burst has ended; returns the time of the last return. */
static int64_t yield_for(const struct worker *self, int thread)
{
	int64_t now_ns;
	int baton;

	do {
		sync_yield();
		now_ns = mono_ns();
		baton = atomic_load_explicit(&state.baton, memory_order_acquire);
	} while (baton != thread && baton != NOBODY && run_is_active(self));
	return now_ns;
}

static bool has_baton(int thread)
{
	return atomic_load_explicit(&state.baton, memory_order_acquire) == thread;
}

/* One act: two switches, of which the second is measured. */
static bool there_and_back(struct worker *self)
{
	uint64_t passes = atomic_load(&state.passes);
	int64_t back_ns;

	pass_to(SECOND);
	back_ns = yield_for(self, FIRST);
	if (!has_baton(FIRST))
		return false;
	if (atomic_load(&state.passes) != passes + 2) {
		run_fail(worker_run(self), "one act of two switches switched %llu times",
			 (unsigned long long)(atomic_load(&state.passes) - passes));
		return false;
	}
	series_add(state.series, back_ns - atomic_load_explicit(&state.yielded_ns, memory_order_relaxed));
	watch_progress(&state.watch);
	return true;
}

static void first(struct worker *self, void *argument)
{
	struct pace pace = {run_start_ns(worker_run(self)), run_settings(worker_run(self))->interval_ns};
	bool going = true;

	(void)argument;
	for (int64_t act = 0; going && run_continues(self); act++) {
		if (act % chosen.burst == 0) {
			atomic_store(&state.baton, NOBODY);
			pace_wait(&pace);
			atomic_store(&state.baton, FIRST);
			sync_post(&state.begun);
		}
		going = there_and_back(self);
	}
	run_finish(worker_run(self));
	watch_leave(&state.watch);
}

static void second(struct worker *self, void *argument)
{
	(void)argument;
	while (run_is_active(self)) {
		if (!sync_take(&state.begun))
			continue;
		while (run_is_active(self) && !has_baton(NOBODY)) {
			yield_for(self, SECOND);
			if (has_baton(SECOND))
				pass_to(FIRST);
		}
	}
	watch_leave(&state.watch);
}

static void setup(struct run *run)
{
	int cpu;

	if (!placement_same_cpu(run, &cpu))
		return;
	run_parameter_int(run, "interval_ns", run_settings(run)->interval_ns);
	run_parameter_int(run, "burst", chosen.burst);
	state.watch.period_ns = run_settings(run)->interval_ns;
	sync_semaphore_init(&state.begun);
	state.series = run_add_series(run, &(struct series_spec){
		.name = "switch",
		.from = "the second thread reads the clock before " SYNC_YIELD_CALL,
		.to = "the first thread reads the clock after its " SYNC_YIELD_CALL " returned",
		.cpu = cpu});
	run_add_worker(run, &(struct worker_spec){.name = "first", .cpu = cpu, .function = first});
	run_add_worker(run, &(struct worker_spec){.name = "second", .cpu = cpu, .function = second});
	watch_add(run, &state.watch);
}

const struct probe switch_probe = {
	.name = "switch",
	.summary = "latency from one thread yielding its CPU to another running on it",
	.options = switch_options,
	.setup = setup,
};
