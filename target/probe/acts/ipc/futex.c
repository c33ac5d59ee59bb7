/* SPDX-License-Identifier: GPL-2.0-or-later */
/* futex: wait and wake by the system call itself, on which most other primitives are built. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"

/* Newer 32-bit architectures have only the call with 64-bit times; without a time-out both are the same. */
#ifndef SYS_futex
#define SYS_futex SYS_futex_time64
#endif

static _Atomic uint32_t word; /* number of the last act that was sent */

static bool open_futex(struct run *run)
{
	(void)run;
	return true;
}

static void wake_waiter(struct pair *pair)
{
	pair_mark_sent(pair);
	atomic_store_explicit(&word, (uint32_t)pair->number, memory_order_release);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int64_t await_wake(uint64_t number)
{
	uint32_t before = (uint32_t)number - 1;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, before, NULL, NULL, 0);
	return pair_time(atomic_load_explicit(&word, memory_order_acquire) != before);
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker reads the clock before storing the new value and FUTEX_WAKE",
	.to = "the waiter reads the clock after FUTEX_WAIT returned and the new value was seen",
	.open = open_futex,
	.wake_on = wake_on,
	.wait_on = wait_on,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe futex_probe = {
	.name = "futex",
	.summary = "latency from FUTEX_WAKE to the return of the thread in FUTEX_WAIT",
	.options = pair_options,
	.setup = setup,
};
