/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mutex-contended: latency from unlocking a mutex to the return of the thread that waits for it.
 *
 * There are two mutexes.  The waker always holds the one that the waiter requests; before it unlocks that one, it locks the
 * other, which the waiter requests next.
 */
#include "contended.h"

#include <string.h>

#include "pair.h"

static sync_mutex mutexes[2];
static uint64_t held; /* number of the act for which the waker holds a mutex; the waker's */
static bool inheriting;

bool mutex_create(struct run *run, sync_mutex *mutex, bool inherits)
{
	int error = sync_mutex_init(mutex, inherits);

	if (error)
		run_not_applicable(run, "no mutex %s priority inheritance: %s", inherits ? "with" : "without", strerror(error));
	return !error;
}

static sync_mutex *mutex_of(uint64_t number)
{
	return &mutexes[number % 2];
}

static bool open_mutexes(struct run *run)
{
	return mutex_create(run, &mutexes[0], inheriting) && mutex_create(run, &mutexes[1], inheriting);
}

static void begin(void)
{
	held = 1;
	sync_lock(mutex_of(held));
}

static void wake_waiter(struct pair *pair)
{
	held = pair->number + 1;
	sync_lock(mutex_of(held));
	pair_mark_sent(pair);
	sync_unlock(mutex_of(pair->number));
}

static int64_t await_wake(uint64_t number)
{
	int64_t back_ns;

	sync_lock(mutex_of(number));
	back_ns = mono_ns();
	sync_unlock(mutex_of(number));
	return back_ns;
}

static void end(void)
{
	sync_unlock(mutex_of(held));
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "handover",
	.from = "the holder reads the clock before " SYNC_UNLOCK_CALL,
	.to = "the waiter reads the clock after " SYNC_LOCK_CALL " returned",
	.open = open_mutexes,
	.begin = begin,
	.wake_on = wake_on,
	.wait_on = wait_on,
	.end = end,
};

void contended_setup(struct run *run, bool inherits)
{
	inheriting = inherits;
	pair_setup(run, &act);
}

static void setup(struct run *run)
{
	contended_setup(run, false);
}

const struct probe mutex_contended_probe = {
	.name = "mutex-contended",
	.summary = "latency from unlocking a mutex to the return of the thread waiting for it",
	.options = pair_options,
	.setup = setup,
};
