/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Missed periods, so that no omission is coordinated; the same in user space and in the kernel.
 *
 * Due times lie on a grid, one period apart.  An act that begins a period or more too late covers
 * several of them: the first is its own, the others are missed, for their acts never took place.
 * In a series corrected for it each of these is charged with the delay it suffered: from its own due time to
 * the beginning.  Charges thus fall by a period from one to the next, in the order of their due times, and those of
 * one bucket follow each other: all of them are added at once, so that a long stall costs as many steps as its
 * charges fill buckets (at most 2^k an octave), not as many as it had periods.
 * A thread that need not wait for its next due time can still act in the period that has begun, late but in
 * it, as a periodic task does whose last job ended late: then that one is not missed.
 */
#ifndef FE_PERIODIC_H
#define FE_PERIODIC_H

#include "fe_hist.h"

#ifdef __KERNEL__
#include <linux/math64.h>
#endif

/* The kernel of a 32-bit machine has no operator for this. */
static inline fe_u64 fe_divide(fe_u64 dividend, fe_u64 divisor)
{
#ifdef __KERNEL__
	return div64_u64(dividend, divisor);
#else
	return dividend / divisor;
#endif
}

/* How many due times lie in (due, begin]. */
static inline fe_u64 fe_periods_missed(fe_s64 due_ns, fe_s64 begin_ns, fe_s64 period_ns)
{
	return begin_ns < due_ns + period_ns ? 0 : fe_divide((fe_u64)(begin_ns - due_ns), (fe_u64)period_ns);
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

/* The least value of the bucket in which a value lies. */
static inline fe_s64 fe_bucket_least(fe_s64 value, unsigned k)
{
	fe_u32 index = fe_hist_index(fe_magnitude(value), k);
	fe_s64 nearest = (fe_s64)fe_hist_lower(index, k);

	return value < 0 ? -(nearest + (fe_s64)fe_hist_width(index, k) - 1) : nearest;
}

/* Adds a product to 128 bits. */
static inline void fe_add_product(fe_u64 *lo, fe_u64 *hi, fe_u64 a, fe_u64 b)
{
	fe_u64 a_hi = a >> 32, a_lo = a & 0xffffffffu, b_hi = b >> 32, b_lo = b & 0xffffffffu;
	fe_u64 low = a_lo * b_lo, one = a_hi * b_lo, other = a_lo * b_hi;
	fe_u64 middle = (low >> 32) + (one & 0xffffffffu) + (other & 0xffffffffu);

	low = (middle << 32) | (low & 0xffffffffu);
	*lo += low;
	*hi += a_hi * b_hi + (one >> 32) + (other >> 32) + (middle >> 32) + (*lo < low);
}

/* Delays, each a step shorter than the one before. */
struct fe_charges {
	fe_s64 first, step;
	fe_u64 count;
};

/* What the missed periods are charged with, in the order of their due times. */
static inline struct fe_charges fe_charges_of(fe_s64 due_ns, fe_s64 begin_ns, fe_s64 period_ns, fe_u64 missed)
{
	return (struct fe_charges){ begin_ns - due_ns - period_ns, period_ns, missed };
}

/* Of at least one. */
static inline fe_s64 fe_charges_last(const struct fe_charges *charges)
{
	return charges->first - (fe_s64)(charges->count - 1) * charges->step;
}

/* Whether their magnitudes surely come to no more than most, at most 2^62, together: so no sum of them overflows. */
static inline int fe_charges_fit(const struct fe_charges *charges, fe_u64 most)
{
	fe_u64 first = fe_magnitude(charges->first), last;

	if (charges->count == 0)
		return 1;
	if (first > most || charges->count > fe_divide(most, (fe_u64)charges->step))
		return 0;
	last = fe_magnitude(fe_charges_last(charges));
	return charges->count <= fe_divide(most, first > last ? first : last ? last : 1);
}

/* Takes those that are not below least off the others that follow; the first is one of them. */
static inline struct fe_charges fe_charges_take(struct fe_charges *charges, fe_s64 least)
{
	fe_u64 above = (fe_u64)(charges->first - least), step = (fe_u64)charges->step;
	struct fe_charges taken = *charges;

	taken.count = above < step ? 1 : fe_divide(above, step) + 1;
	if (taken.count > charges->count)
		taken.count = charges->count;
	charges->first -= (fe_s64)taken.count * charges->step;
	charges->count -= taken.count;
	return taken;
}

/* Adds all of them, which fit and are less than 2^32; none of them has another sign than the others. */
static inline void fe_stats_add_charges(struct fe_stats *stats, const struct fe_charges *charges)
{
	fe_s64 first = charges->first, last = fe_charges_last(charges);
	fe_u64 count = charges->count, step = (fe_u64)charges->step;
	fe_u64 nearest = first < 0 ? fe_magnitude(first) : (fe_u64)last;
	/* 0 + 1 + ... + (count - 1); and 0 + 1 + 4 + ... + (count - 1)^2 = steps (2 count - 1) / 3 */
	fe_u64 steps = count * (count - 1) / 2, a = steps, b = 2 * count - 1;

	if ((fe_u32)count % 3 == 2)
		b = fe_divide(b, 3);
	else
		a = fe_divide(a, 3);
	if (stats->count == 0 || last < stats->min)
		stats->min = last;
	if (stats->count == 0 || first > stats->max)
		stats->max = first;
	stats->count += count;
	stats->sum += (fe_s64)count * first - (fe_s64)(steps * step);
	/* (nearest + i step)^2 for each i below count */
	fe_add_product(&stats->sum_sq_lo, &stats->sum_sq_hi, count * nearest, nearest);
	fe_add_product(&stats->sum_sq_lo, &stats->sum_sq_hi, steps * step, 2 * nearest);
	fe_add_product(&stats->sum_sq_lo, &stats->sum_sq_hi, a * step, b * step);
}

#endif
