/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signal: from queueing a real-time signal to the thread in sigwaitinfo() going on. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>

#include "libc.h"
#include "pair.h"

static sigset_t awaited;

static bool open_signal(struct run *run)
{
	(void)run;
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGRTMIN);
	/* All threads inherit the mask, so the signal stays pending until it is received. */
	return pthread_sigmask(SIG_BLOCK, &awaited, NULL) == 0;
}

static void wake_waiter(struct pair *pair)
{
	pair_mark_sent(pair);
	signal_queue(pair->waiter, pair->waiter_tid, SIGRTMIN, (union sigval){.sival_int = (int)pair->number});
}

static int64_t await_wake(uint64_t number)
{
	siginfo_t info;
	bool came = signal_wait(&awaited, &info) > 0;

	return pair_time_of(came, came ? (uint64_t)(uint32_t)info.si_value.sival_int : 0, (uint32_t)number);
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker reads the clock before pthread_sigqueue()",
	.to = "the waiter reads the clock after sigwaitinfo() returned",
	.open = open_signal,
	.wake_on = wake_on,
	.wait_on = wait_on,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe signal_probe = {
	.name = "signal",
	.summary = "latency from queueing a signal to the return of the thread waiting for it",
	.options = pair_options,
	.setup = setup,
};
