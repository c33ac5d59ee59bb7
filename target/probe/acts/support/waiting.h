/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waiting that leaves CPU time to other threads. */
#ifndef WAITING_H
#define WAITING_H

#include <stdatomic.h>

#include "frame.h"
#include "periodic.h"
#include "sleep.h"

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static inline void nap(int64_t ns)
{
	sleep_for(ns);
}

/* A grid of due times.  Due times in the past are skipped, so that threads on one grid stay in phase. */
struct pace {
	int64_t due_ns, period_ns;
};

static inline void pace_wait(struct pace *pace)
{
	pace->due_ns = fe_due_after(pace->due_ns + pace->period_ns, mono_ns(), pace->period_ns);
	sleep_until(pace->due_ns);
}

#define REST_LEAST_NS (100 * NS_PER_US)

/*
 * A busy thread rests as long as it worked, so that it never uses more than half of a CPU, but at most half the time-out of
 * its watch: on a busy machine the work may have taken seconds.
 */
static inline void rest_since(int64_t begin_ns, int64_t timeout_ns)
{
	int64_t worked_ns = mono_ns() - begin_ns, most_ns = timeout_ns / 2;

	nap(worked_ns < REST_LEAST_NS ? REST_LEAST_NS : worked_ns > most_ns ? most_ns : worked_ns);
}

/* Waits until a counter reaches n: spins for at most spin_ns, then sleeps between checks.  False if the run ends. */
static inline bool await_count(const struct worker *self, _Atomic uint64_t *counter, uint64_t n, int64_t spin_ns)
{
	int64_t give_up_ns = spin_ns ? mono_ns() + spin_ns : 0;

	while (atomic_load_explicit(counter, memory_order_acquire) < n) {
		if (!run_is_active(self))
			return false;
		if (give_up_ns && mono_ns() < give_up_ns)
			cpu_relax();
		else
			nap(20 * NS_PER_US);
	}
	return true;
}

#endif
