/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "periodic.h"
#include "random.h"

#define K 3 /* coarse, so that buckets hold many */
#define HALF ((int)FE_HIST_BUCKETS(63, K))
#define STALLS 20000

struct sums {
	struct fe_stats stats;
	fe_u32 buckets[2 * FE_HIST_BUCKETS(63, K)]; /* 0 at HALF */
};

static fe_u32 *bucket_of(struct sums *sums, fe_s64 value)
{
	int index = (int)fe_hist_index(fe_magnitude(value), K);

	return &sums->buckets[HALF + (value < 0 ? -index : index)];
}

static void one_by_one(struct sums *sums, fe_s64 due, fe_s64 begin, fe_s64 period, fe_u64 missed)
{
	for (fe_u64 n = 1; n <= missed; n++) {
		fe_s64 delay = begin - (due + (fe_s64)n * period);

		++*bucket_of(sums, delay);
		fe_stats_add(&sums->stats, delay);
	}
}

static void by_bucket(struct sums *sums, fe_s64 due, fe_s64 begin, fe_s64 period, fe_u64 missed)
{
	struct fe_charges charges = fe_charges_of(due, begin, period, missed);

	check(fe_charges_fit(&charges, (fe_u64)1 << 62));
	while (charges.count) {
		struct fe_charges some = fe_charges_take(&charges, fe_bucket_least(charges.first, K));

		check(some.count && bucket_of(sums, some.first) == bucket_of(sums, fe_charges_last(&some)));
		check(!charges.count || bucket_of(sums, charges.first) != bucket_of(sums, some.first));
		*bucket_of(sums, some.first) += (fe_u32)some.count;
		fe_stats_add_charges(&sums->stats, &some);
	}
}

/* Stalls of all lengths and periods; now and then the kernel counts more periods than the clock says, or the clock was
 * set back, so that delays lie below 0. */
static void same_as_one_by_one(void)
{
	static struct sums all, each;

	for (int i = 0; i < STALLS; i++) {
		fe_s64 period = 1 + (fe_s64)(next_random() >> (28 + next_random() % 35));
		fe_s64 due = (fe_s64)(next_random() >> 10), late = (fe_s64)(next_random() % 3000) * period / 7;
		fe_s64 begin = next_random() % 8 ? due + late : due - late;
		fe_u64 missed = next_random() % 8 ? fe_periods_missed(due, begin, period) : next_random() % 500;

		if (i % 64 == 0)
			all = each = (struct sums){0};
		one_by_one(&each, due, begin, period, missed);
		by_bucket(&all, due, begin, period, missed);
		check(!memcmp(&all, &each, sizeof(all)));
	}
}

static fe_u64 squares_to(fe_u64 n)
{
	fe_u64 sum = 0;

	for (fe_u64 i = 1; i <= n; i++)
		sum += i * i;
	return sum;
}

/* Many in one bucket, and the extremes of what fits. */
static void at_the_limits(void)
{
	const fe_u64 most = (fe_u64)1 << 62;
	struct fe_charges charges = {3000000, 1, 3000001}, longest = {(fe_s64)most, 1, 1}, negative = {0, 1 << 30, 1u << 16};
	struct fe_stats stats = {0};

	fe_stats_add_charges(&stats, &charges);
	check(stats.sum_sq_hi == 0 && stats.sum_sq_lo == squares_to(3000000) && stats.min == 0 && stats.max == 3000000);
	check(fe_charges_fit(&longest, most) && !fe_charges_fit(&longest, most - 1));
	longest.count = 2;
	check(!fe_charges_fit(&longest, most));
	check(fe_charges_fit(&negative, most) && !fe_charges_fit(&negative, most / 2));
	negative.count = (fe_u64)1 << 40;
	check(!fe_charges_fit(&negative, most));
	charges = (struct fe_charges){5, INT64_MAX, UINT64_MAX};
	check(!fe_charges_fit(&charges, most));
	charges.count = 0;
	check(fe_charges_fit(&charges, 0));
}

int main(void)
{
	/* in time, early, late within the period */
	check(fe_periods_missed(1000, 1000, 100) == 0);
	check(fe_periods_missed(1000, 900, 100) == 0);
	check(fe_periods_missed(1000, 500, 100) == 0);
	check(fe_periods_missed(1000, 1099, 100) == 0);
	/* as late as the next due time: that one did not take place */
	check(fe_periods_missed(1000, 1100, 100) == 1);
	check(fe_periods_missed(1000, 1199, 100) == 1);
	check(fe_periods_missed(1000, 1250, 100) == 2);
	check(fe_charges_of(1000, 1250, 100, 2).first == 150);
	/* where an act follows at once, the period that has begun is not missed */
	check(fe_periods_over(1000, 900, 100) == 0);
	check(fe_periods_over(1000, 1099, 100) == 0);
	check(fe_periods_over(1000, 1100, 100) == 0);
	check(fe_periods_over(1000, 1250, 100) == 1);
	/* a stall of 100 ms at 200 us: its own act and 500 missed, or 499 if it began off the grid */
	check(fe_periods_missed(0, 100000000, 200000) == 500);
	check(fe_periods_missed(0, 99999999, 200000) == 499);
	/* every delay charged lies within the stall, and the next due time is in the future */
	for (fe_s64 begin = 0; begin < 2000; begin++) {
		fe_u64 missed = fe_periods_missed(7, begin, 13);
		struct fe_charges charges = fe_charges_of(7, begin, 13, missed);

		check(!missed || (charges.first < begin - 7 && fe_charges_last(&charges) >= 0));
		check(7 + (fe_s64)(missed + 1) * 13 > begin);
	}
	/* an hour asleep at 20 us does not overflow */
	check(fe_periods_missed(0, 3600000000000, 20000) == 180000000);
	/* whoever is ready late begins on the same grid, later */
	check(fe_due_after(1000, 999, 100) == 1000);
	check(fe_due_after(1000, 1000, 100) == 1100);
	check(fe_due_after(1000, 1099, 100) == 1100);
	check(fe_due_after(1000, 1250, 100) == 1300);
	same_as_one_by_one();
	at_the_limits();
	return failures != 0;
}
