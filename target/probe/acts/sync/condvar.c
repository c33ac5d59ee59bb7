/* SPDX-License-Identifier: GPL-2.0-or-later */
/* condvar: latency from signalling a condition variable to the return of the waiting thread, which holds the mutex. */
#include "pair.h"
#include "sync.h"

static sync_mutex mutex;
static sync_condition condition;
static uint64_t signalled; /* number of the last act; UINT64_MAX at the end */

static bool open_condvar(struct run *run)
{
	(void)run;
	return sync_mutex_init(&mutex, false) == 0 && sync_condition_init(&condition);
}

static void set(uint64_t number)
{
	sync_lock(&mutex);
	signalled = number;
	sync_unlock(&mutex);
}

/* Signals after unlocking: otherwise the waiter would wake only to wait for the mutex. */
static void wake_waiter(struct pair *pair)
{
	set(pair->number);
	pair_mark_sent(pair);
	sync_signal(&condition);
}

static int64_t await_wake(uint64_t number)
{
	int64_t back_ns;

	sync_lock(&mutex);
	while (signalled < number)
		sync_wait(&condition, &mutex);
	back_ns = mono_ns();
	sync_unlock(&mutex);
	return back_ns;
}

static void release(void)
{
	set(UINT64_MAX);
	sync_broadcast(&condition);
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker, the predicate being set, reads the clock before " SYNC_SIGNAL_CALL,
	.to = "the waiter reads the clock after " SYNC_WAIT_CALL " returned, holding the mutex",
	.open = open_condvar,
	.wake_on = wake_on,
	.wait_on = wait_on,
	.release = release,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe condvar_probe = {
	.name = "condvar",
	.summary = "latency from signalling a condition variable to the return of the waiting thread",
	.options = pair_options,
	.setup = setup,
};
