/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Missed periods, so that no omission is coordinated; the same in user space and in the kernel.
 *
 * Due times lie on a grid, one period apart.  An act that begins a period or more too late covers
 * several of them: the first is its own, the others are missed, for their acts never took place.
 * In a series corrected for it each of these is charged with the delay it suffered: from its own due time to
 * the beginning.  Charges thus fall from one to the next, in the order of their due times.
 * A thread that need not wait for its next due time can still act in the period that has begun, late but in
 * it, as a periodic task does whose last job ended late: then that one is not missed.
 */
#ifndef FE_PERIODIC_H
#define FE_PERIODIC_H

#include "fe_hist.h"

#ifdef __KERNEL__
#include <linux/math64.h>
#endif

/* Both are not negative; the kernel of a 32-bit machine has no operator for this. */
static inline fe_u64 fe_periods_in(fe_s64 length_ns, fe_s64 period_ns)
{
#ifdef __KERNEL__
	return div64_u64((fe_u64)length_ns, (fe_u64)period_ns);
#else
	return (fe_u64)(length_ns / period_ns);
#endif
}

/* How many due times lie in (due, begin]. */
static inline fe_u64 fe_periods_missed(fe_s64 due_ns, fe_s64 begin_ns, fe_s64 period_ns)
{
	return begin_ns < due_ns + period_ns ? 0 : fe_periods_in(begin_ns - due_ns, period_ns);
}

/* The same, where an act follows at once in the period that has begun: only periods that are over are missed. */
static inline fe_u64 fe_periods_over(fe_s64 due_ns, fe_s64 begin_ns, fe_s64 period_ns)
{
	fe_u64 missed = fe_periods_missed(due_ns, begin_ns, period_ns);

	return missed ? missed - 1 : 0;
}

/* The first due time of a grid that is still to come: what passed before one was ready for it is no one's delay. */
static inline fe_s64 fe_due_after(fe_s64 due_ns, fe_s64 now_ns, fe_s64 period_ns)
{
	return now_ns < due_ns ? due_ns : due_ns + (fe_s64)(fe_periods_missed(due_ns, now_ns, period_ns) + 1) * period_ns;
}

/* The delay charged to the n-th missed period, n from 1 on. */
static inline fe_s64 fe_delay_charged(fe_s64 due_ns, fe_s64 begin_ns, fe_s64 period_ns, fe_u64 n)
{
	return begin_ns - due_ns - (fe_s64)n * period_ns;
}

#endif
