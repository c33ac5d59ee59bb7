/* SPDX-License-Identifier: GPL-2.0-or-later */
/* semaphore: latency from posting a semaphore to the return of the waiting thread. */
#include "pair.h"
#include "sync.h"

static sync_semaphore semaphore;

static bool open_semaphore(struct run *run)
{
	(void)run;
	return sync_semaphore_init(&semaphore);
}

static void wake_waiter(struct pair *pair)
{
	pair_mark_sent(pair);
	sync_post(&semaphore);
}

static int64_t await_wake(uint64_t number)
{
	(void)number;
	return pair_time(sync_take(&semaphore));
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker reads the clock before " SYNC_POST_CALL,
	.to = "the waiter reads the clock after " SYNC_TAKE_CALL " returned",
	.open = open_semaphore,
	.wake_on = wake_on,
	.wait_on = wait_on,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe semaphore_probe = {
	.name = "semaphore",
	.summary = "latency from posting a POSIX semaphore to the return of the waiting thread",
	.options = pair_options,
	.setup = setup,
};
