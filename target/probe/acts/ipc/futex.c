/* SPDX-License-Identifier: GPL-2.0-or-later */
/* futex: the kernel's wait and wake, on which most of the others are built, bare. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"

/* 32-bit architectures born after 2038 was noticed have only the new call; without a time-out both are one. */
#ifndef SYS_futex
#define SYS_futex SYS_futex_time64
#endif

static _Atomic uint32_t word; /* the number of the last act given */

static bool open_futex(struct run *run)
{
	(void)run;
	return true;
}

static void give(struct pair *pair)
{
	pair_note(pair);
	atomic_store_explicit(&word, (uint32_t)pair->number, memory_order_release);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int64_t take(uint64_t number)
{
	uint32_t before = (uint32_t)number - 1;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, before, NULL, NULL, 0);
	return pair_time(atomic_load_explicit(&word, memory_order_acquire) != before);
}

PAIR_LOOPS(give, take)

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
