/* SPDX-License-Identifier: GPL-2.0-or-later */
/* condvar: from signalling a condition variable to the waiting thread going on, with the mutex. */
#include <pthread.h>

#include "pair.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static uint64_t signalled; /* number of the last act; UINT64_MAX at the end */

static bool open_condvar(struct run *run)
{
	(void)run;
	return true;
}

static void set(uint64_t number)
{
	pthread_mutex_lock(&mutex);
	signalled = number;
	pthread_mutex_unlock(&mutex);
}

/* The signal comes after the unlocking: within it, the waiter would wake only to wait for the mutex. */
static void give(struct pair *pair)
{
	set(pair->number);
	pair_note(pair);
	pthread_cond_signal(&condition);
}

static int64_t take(uint64_t number)
{
	int64_t back_ns;

	pthread_mutex_lock(&mutex);
	while (signalled < number)
		pthread_cond_wait(&condition, &mutex);
	back_ns = mono_ns();
	pthread_mutex_unlock(&mutex);
	return back_ns;
}

static void release(void)
{
	set(UINT64_MAX);
	pthread_cond_broadcast(&condition);
}

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker, the predicate being set, reads the clock before pthread_cond_signal()",
	.to = "the waiter reads the clock after pthread_cond_wait() returned, holding the mutex",
	.open = open_condvar,
	.give = give,
	.take = take,
	.release = release,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe condvar_probe = {
	.name = "condvar",
	.summary = "from signalling a condition variable to the waiting thread going on",
	.options = pair_options,
	.setup = setup,
};
