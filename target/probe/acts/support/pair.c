/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pair.h"

#include <errno.h>
#include <string.h>

#include "waiting.h"
#include "thread.h"

/* How long to spin for a partner on another CPU before napping. */
#define SPIN_NS (50 * NS_PER_US)

struct pair_choice pair_choice = {
	.placement = PLACEMENT_SAME,
	.burst = 1,
	.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .members = 2},
};

const struct option_spec pair_options[] = {PAIR_OPTIONS, {0}};

static struct {
	const struct pair_act *act;
	struct pair pair;
	struct series *series;
	int64_t spin_ns;
	bool sleeps_anyway; /* a waiter of higher priority on the waker's CPU: else the waker would not run */
} state;

/* Waits until the waiter sleeps.  After it has set `armed`, it may still be awake on another CPU. */
static bool await_waiter(const struct worker *self, struct pair *pair)
{
	if (!await_count(self, &pair->armed, pair->number, state.spin_ns))
		return false;
	if (state.sleeps_anyway)
		return true;
	if (pair->waiter_fd < 0)
		pair->waiter_fd = thread_sleep_open(pair->waiter_tid);
	if (pair->waiter_fd < 0) {
		run_fail(worker_run(self), "cannot read the state of the waiting thread in /proc/self/task: %s", strerror(errno));
		return false;
	}
	while (!thread_sleeps(pair->waiter_fd)) {
		if (!run_is_active(self))
			return false;
		nap(20 * NS_PER_US);
	}
	return true;
}

bool pair_next(struct worker *self, struct pair *pair)
{
	if (!run_continues(self))
		return false;
	if (pair->number % (uint64_t)pair_choice.burst == 0)
		pace_wait(&pair->pace);
	pair->number++;
	return await_waiter(self, pair);
}

bool pair_await_done(const struct worker *self, struct pair *pair)
{
	return await_count(self, &pair->done, pair->number, state.spin_ns);
}

static void waker(struct worker *self, void *argument)
{
	struct pair *pair = argument;

	if (state.act->begin)
		state.act->begin();
	pair->pace = (struct pace){run_start_ns(worker_run(self)), run_settings(worker_run(self))->interval_ns};
	atomic_store(&pair->open, true);
	state.act->wake_on(self, pair);
	run_finish(worker_run(self));
	if (state.act->end)
		state.act->end();
	watch_leave(&pair_choice.watch);
}

/* Records the latency of an act; false if the run ends or the act was wrong. */
bool pair_record(struct worker *self, struct pair *pair, uint64_t number, int64_t back_ns)
{
	int64_t sent_ns = atomic_load_explicit(&pair->sent_ns, memory_order_acquire);
	uint64_t sent = atomic_load_explicit(&pair->sent, memory_order_relaxed);

	if (!run_is_active(self))
		return false;
	if (back_ns == PAIR_WRONG || sent != number) {
		run_fail(worker_run(self),
			 "the waiter returned for hand-over %llu%s, but the last one sent was %llu", (unsigned long long)number,
			 back_ns == PAIR_WRONG ? " with other data" : "", (unsigned long long)sent);
		return false;
	}
	series_add(state.series, back_ns - sent_ns);
	watch_progress(&pair_choice.watch);
	atomic_store_explicit(&pair->done, number, memory_order_release);
	return true;
}

static void waiter(struct worker *self, void *argument)
{
	struct pair *pair = argument;

	pair->waiter = pthread_self();
	pair->waiter_tid = thread_id();
	while (run_is_active(self) && !atomic_load(&pair->open))
		nap(NS_PER_MS);
	state.act->wait_on(self, pair);
	watch_leave(&pair_choice.watch);
}

void pair_setup(struct run *run, const struct pair_act *act)
{
	struct cpu_pair cpus;

	if (!placement_find(run, pair_choice.placement, &cpus) || !act->open(run))
		return;
	run_parameter_int(run, "interval_ns", run_settings(run)->interval_ns);
	run_parameter_int(run, "burst", pair_choice.burst);
	state.act = act;
	state.pair.waiter_fd = -1;
	state.spin_ns = cpus.first == cpus.second ? 0 : SPIN_NS;
	state.sleeps_anyway = cpus.first == cpus.second && run_settings(run)->policy != POLICY_OTHER;
	pair_choice.watch.release = act->release;
	state.series = run_add_series(run, &(struct series_spec){
		.name = act->series, .from = act->from, .to = act->to, .cpu = cpus.second,
		.labels = {{"placement", placement_names[pair_choice.placement]}}});
	run_add_worker(run, &(struct worker_spec){.name = "waker", .cpu = cpus.first, .priority_offset = -1, .function = waker,
						  .argument = &state.pair});
	run_add_worker(run, &(struct worker_spec){.name = "waiter", .cpu = cpus.second, .function = waiter,
						  .argument = &state.pair});
	pair_choice.watch.period_ns = run_settings(run)->interval_ns;
	watch_add(run, &pair_choice.watch);
}
