/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Periods owed: no coordinated omission.
 *
 * Due times lie on a grid, one period apart.  An act that begins a period or more too late covers
 * several of them: the first is its own, the others are missed, for their acts never took place.
 * Each of them is charged with the delay it suffered: from its own due time to the beginning.
 * A thread that need not wait for its next due time can still act in the period that has begun, late but in
 * it, as a periodic task does whose last job ended late: then that one is not missed.
 */
#ifndef OWED_H
#define OWED_H

#include <stdint.h>

/* How many due times lie in (due, begin]. */
static inline uint64_t periods_missed(int64_t due_ns, int64_t begin_ns, int64_t period_ns)
{
	return begin_ns < due_ns + period_ns ? 0 : (uint64_t)((begin_ns - due_ns) / period_ns);
}

/* The same, where an act follows at once in the period that has begun: only periods that are over are missed. */
static inline uint64_t periods_over(int64_t due_ns, int64_t begin_ns, int64_t period_ns)
{
	uint64_t missed = periods_missed(due_ns, begin_ns, period_ns);

	return missed ? missed - 1 : 0;
}

/* The first due time of a grid that is still to come: what passed before one was ready for it is no one's delay. */
static inline int64_t due_after(int64_t due_ns, int64_t now_ns, int64_t period_ns)
{
	return now_ns < due_ns ? due_ns : due_ns + (int64_t)(periods_missed(due_ns, now_ns, period_ns) + 1) * period_ns;
}

/* The delay charged to the n-th missed period, n from 1 on. */
static inline int64_t delay_owed(int64_t due_ns, int64_t begin_ns, int64_t period_ns, uint64_t n)
{
	return begin_ns - due_ns - (int64_t)n * period_ns;
}

#endif
