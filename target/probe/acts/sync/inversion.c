/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inversion: time that a high-priority thread waits for a mutex of a low-priority thread while a medium-priority thread
 * computes; alternately with and without priority inheritance.
 *
 * All three share one CPU.  The low thread locks, wakes the high one, which preempts it and requests the mutex, then wakes
 * the medium one and unlocks.  Without inheritance the medium thread preempts the low one before it unlocks; with
 * inheritance the low thread has the high priority until it has unlocked.
 */

#include "contended.h"
#include "waiting.h"
#include "placement.h"
#include "watch.h"

/* The period is at least this multiple of the medium thread's time, whatever --interval. */
#define MEDIUM_SHARE 4

static struct {
	int64_t medium_ns;
} chosen = {.medium_ns = 2 * NS_PER_MS};

struct variant {
	sync_mutex mutex;
	struct series *series;
	bool inherits;
};

static struct {
	struct variant variants[2];
	int64_t period_ns;
	sync_semaphore high_may, medium_may;
	_Atomic uint64_t act;  /* the current one, from 1 on */
	_Atomic uint64_t asked; /* number of the last act in which high, medium ... */
	_Atomic uint64_t computed;
	_Atomic uint64_t recovered;
	struct watch watch;
} state = {.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .members = 3}};

static const struct option_spec inversion_options[] = {
	{"medium", 0, OPTION_DURATION, &chosen.medium_ns, .low = 10 * NS_PER_US, .high = 100 * NS_PER_MS, .plain = NS_PER_US,
	 .plain_name = "us", .help = "how long the medium thread computes (2ms)"},
	TIMEOUT_OPTION(state.watch),
	{0},
};

static struct variant *variant_of(uint64_t act)
{
	return &state.variants[act % 2];
}

/* The high thread requests the mutex before sync_post() returns, unless something delays it, such as a page fault. */
static bool invert(struct worker *self, uint64_t act)
{
	struct variant *variant = variant_of(act);
	bool going;

	atomic_store(&state.act, act);
	sync_lock(&variant->mutex);
	sync_post(&state.high_may);
	going = await_count(self, &state.asked, act, 0);
	sync_post(&state.medium_may);
	sync_unlock(&variant->mutex);
	return going && await_count(self, &state.recovered, act, 0) && await_count(self, &state.computed, act, 0);
}

static void low(struct worker *self, void *argument)
{
	struct pace pace = {run_start_ns(worker_run(self)), state.period_ns};
	bool going = true;

	(void)argument;
	for (uint64_t act = 1; going && run_continues(self); act++) {
		pace_wait(&pace);
		going = invert(self, act);
	}
	run_finish(worker_run(self));
	watch_leave(&state.watch);
}

static void medium(struct worker *self, void *argument)
{
	(void)argument;
	while (run_is_active(self)) {
		int64_t end_ns;

		if (!sync_take(&state.medium_may))
			continue;
		end_ns = mono_ns() + chosen.medium_ns;
		while (mono_ns() < end_ns && run_is_active(self))
			cpu_relax();
		atomic_store(&state.computed, atomic_load(&state.act));
	}
	watch_leave(&state.watch);
}

/* Checks the order of medium and high thread, which defines the variants. */
static bool as_expected(struct worker *self, const struct variant *variant, bool medium_was_first)
{
	if (medium_was_first != variant->inherits)
		return true;
	run_fail(worker_run(self), variant->inherits ? "the medium thread ran before the high one: nothing was inherited"
						     : "the medium thread did not run before the high one: nothing was inverted");
	return false;
}

static bool recover(struct worker *self)
{
	uint64_t act = atomic_load(&state.act);
	struct variant *variant = variant_of(act);
	int64_t asked_ns, locked_ns;
	bool medium_was_first;

	atomic_store(&state.asked, act);
	asked_ns = mono_ns();
	sync_lock(&variant->mutex);
	locked_ns = mono_ns();
	medium_was_first = atomic_load(&state.computed) == act;
	sync_unlock(&variant->mutex);
	if (!run_is_active(self) || !as_expected(self, variant, medium_was_first))
		return false;
	series_add(variant->series, locked_ns - asked_ns);
	watch_progress(&state.watch);
	atomic_store(&state.recovered, act);
	return true;
}

static void high(struct worker *self, void *argument)
{
	bool going = true;

	(void)argument;
	while (going && run_is_active(self))
		if (sync_take(&state.high_may))
			going = recover(self);
	watch_leave(&state.watch);
}

static bool add_variant(struct run *run, struct variant *variant, int cpu, bool inherits)
{
	variant->inherits = inherits;
	variant->series = run_add_series(run, &(struct series_spec){
		.name = "recovery",
		.from = "the high thread reads the clock before " SYNC_LOCK_CALL ", the low one holding the mutex",
		.to = "the high thread reads the clock after " SYNC_LOCK_CALL " returned",
		.cpu = cpu,
		.role = inherits ? SERIES_VERDICT : SERIES_DIAGNOSTIC, /* without, the medium thread delays it on purpose */
		.labels = {{"inheritance", inherits ? "yes" : "no"}}});
	return mutex_create(run, &variant->mutex, inherits);
}

static void add_workers(struct run *run, int cpu)
{
	run_add_worker(run, &(struct worker_spec){.name = "low", .cpu = cpu, .priority_offset = -2, .function = low});
	run_add_worker(run, &(struct worker_spec){.name = "medium", .cpu = cpu, .priority_offset = -1, .function = medium});
	run_add_worker(run, &(struct worker_spec){.name = "high", .cpu = cpu, .function = high});
	watch_add(run, &state.watch);
}

static void setup(struct run *run)
{
	const struct settings *settings = run_settings(run);
	int cpu;

	if (settings->policy != POLICY_FIFO && settings->policy != POLICY_RR) {
		run_not_applicable(run, "priority inversion needs real-time priorities; use --policy fifo or rr");
		return;
	}
	if (!placement_same_cpu(run, &cpu))
		return;
	if (!add_variant(run, &state.variants[0], cpu, false) || !add_variant(run, &state.variants[1], cpu, true))
		return;
	state.period_ns = MEDIUM_SHARE * chosen.medium_ns;
	if (state.period_ns < settings->interval_ns)
		state.period_ns = settings->interval_ns;
	run_parameter_int(run, "interval_ns", state.period_ns);
	run_parameter_int(run, "medium_ns", chosen.medium_ns);
	state.watch.period_ns = state.period_ns;
	sync_semaphore_init(&state.high_may);
	sync_semaphore_init(&state.medium_may);
	add_workers(run, cpu);
}

const struct probe inversion_probe = {
	.name = "inversion",
	.summary = "time a high-priority thread waits for a low one's mutex while a medium one computes",
	.options = inversion_options,
	.setup = setup,
};
