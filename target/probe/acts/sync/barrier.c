/* SPDX-License-Identifier: GPL-2.0-or-later */
/* barrier: latency from the arrival of the second thread to the return of the first one. */
#include "pair.h"
#include "sync.h"

static sync_barrier barrier;
static _Atomic uint64_t arrivals;

static bool open_barrier(struct run *run)
{
	(void)run;
	return sync_barrier_init(&barrier, 2);
}

static void wake_waiter(struct pair *pair)
{
	atomic_fetch_add(&arrivals, 1);
	pair_mark_sent(pair);
	sync_arrive(&barrier);
}

static int64_t await_wake(uint64_t number)
{
	(void)number;
	atomic_fetch_add(&arrivals, 1);
	sync_arrive(&barrier);
	return mono_ns();
}

/* Releases the other thread after one has left: with an odd number of arrivals it still waits. */
static void release(void)
{
	if (atomic_load(&arrivals) % 2 == 0)
		return;
	atomic_fetch_add(&arrivals, 1);
	sync_arrive(&barrier);
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker, arriving last, reads the clock before " SYNC_ARRIVE_CALL,
	.to = "the waiter, arrived first, reads the clock after its " SYNC_ARRIVE_CALL " returned",
	.open = open_barrier,
	.wake_on = wake_on,
	.wait_on = wait_on,
	.release = release,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe barrier_probe = {
	.name = "barrier",
	.summary = "latency from the second arrival at a barrier to the return of the first thread",
	.options = pair_options,
	.setup = setup,
};
