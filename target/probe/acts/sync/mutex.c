/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mutex: time to lock and unlock an uncontended mutex. */
#include <errno.h>

#include "contended.h"
#include "waiting.h"
#include "watch.h"

static struct {
	int64_t burst;
} chosen = {.burst = 100};

static struct {
	sync_mutex mutex;
	struct series *series;
	struct watch watch;
} state = {.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .members = 1}};

static const struct option_spec mutex_options[] = {
	{"burst", 0, OPTION_INTEGER, &chosen.burst, .low = 1, .high = 10000, .help = "acts in a row per --interval (100)"},
	TIMEOUT_OPTION(state.watch),
	{0},
};

/* Checks, outside the timed part, that the mutex really locks. */
static bool mutex_locks(void)
{
	int held, free;

	sync_lock(&state.mutex);
	held = sync_trylock(&state.mutex);
	sync_unlock(&state.mutex);
	free = sync_trylock(&state.mutex);
	if (!free)
		sync_unlock(&state.mutex);
	return held == EBUSY && !free;
}

static void lock_and_unlock(void)
{
	int64_t begin_ns = mono_ns();

	sync_lock(&state.mutex);
	sync_unlock(&state.mutex);
	series_add(state.series, mono_ns() - begin_ns);
}

static void mutex_worker(struct worker *self, void *argument)
{
	struct pace pace = {run_start_ns(worker_run(self)), run_settings(worker_run(self))->interval_ns};

	(void)argument;
	for (int64_t act = 0; run_continues(self); act++) {
		if (act % chosen.burst == 0) {
			pace_wait(&pace);
			if (!mutex_locks()) {
				run_fail(worker_run(self), "the mutex does not lock what it should, or keeps it locked");
				break;
			}
			watch_progress(&state.watch);
		}
		lock_and_unlock();
	}
	run_finish(worker_run(self));
	watch_leave(&state.watch);
}

static void rescue(void)
{
	sync_unlock(&state.mutex);
}

static void setup(struct run *run)
{
	int cpu = run_cpu(run, 0);

	if (!mutex_create(run, &state.mutex, false))
		return;
	run_parameter_int(run, "interval_ns", run_settings(run)->interval_ns);
	run_parameter_int(run, "burst", chosen.burst);
	state.watch.rescue = rescue;
	state.watch.period_ns = run_settings(run)->interval_ns;
	state.series = run_add_series(run, &(struct series_spec){
		.name = "lock-unlock",
		.from = "the thread reads the clock before " SYNC_LOCK_CALL,
		.to = "it reads the clock after " SYNC_UNLOCK_CALL " returned",
		.cpu = cpu, .any_cpu = run_settings(run)->policy == POLICY_DEADLINE});
	run_add_worker(run, &(struct worker_spec){.name = "locker", .cpu = cpu, .function = mutex_worker});
	watch_add(run, &state.watch);
}

const struct probe mutex_probe = {
	.name = "mutex",
	.summary = "time to lock and unlock an uncontended mutex",
	.options = mutex_options,
	.setup = setup,
};
