// SPDX-License-Identifier: GPL-2.0-or-later
/* Adds a value, or the charges of a stall, to a series, as series.c does in the probe. */
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "fastenough.h"

static u32 before[FE_BANK_MAX_SERIES]; /* coarse bucket of the last value, whatever its bank */

s32 fe_bucket(s64 value_ns)
{
	s32 index = fe_hist_index(fe_magnitude(value_ns), FE_BANK_K);

	return value_ns < 0 ? -index : index;
}

static void follow(struct fe_tally *tally, unsigned int series, s64 value_ns)
{
	u32 coarse = fe_hist_index(max_t(s64, value_ns, 0), FE_BANK_RISE_K);

	if (coarse > before[series]) {
		tally->rises[before[series] + 1]++;
		tally->rises[coarse + 1]--;
	}
	before[series] = coarse;
}

static void lose(struct fe_tally *tally, unsigned int series, u64 count)
{
	tally->lost += count;
	tally->gaps++;
	before[series] = 0;
}

void fe_record(struct fe_bank *bank, unsigned int series, s64 value_ns, ktime_t at)
{
	struct fe_tally *tally = &bank->series[series];
	u32 *bucket = &tally->buckets[fe_bucket(max_t(s64, value_ns, -S64_MAX))];

	bank->cpu = raw_smp_processor_id();
	if (*bucket == U32_MAX) {
		lose(tally, series, 1);
		return;
	}
	++*bucket;
	follow(tally, series, value_ns);
	if (tally->stats.count == 0 || value_ns > tally->stats.max) {
		tally->max_at = at;
		tally->max_cpu = bank->cpu;
	}
	fe_stats_add(&tally->stats, value_ns);
}

/* Adds charges of one bucket.  None is a new maximum: the delay of the act itself, recorded before, is longer. */
static void charge(struct fe_tally *tally, unsigned int series, const struct fe_charges *charges)
{
	u32 *bucket = &tally->buckets[fe_bucket(charges->first)];

	if (charges->count > U32_MAX - *bucket) {
		lose(tally, series, charges->count);
		return;
	}
	*bucket += charges->count;
	follow(tally, series, charges->first);
	fe_stats_add_charges(&tally->stats, charges);
}

static bool fit(const struct fe_tally *tally, const struct fe_charges *charges)
{
	u64 sum = fe_magnitude(tally->stats.sum);

	return sum <= FE_BANK_SUM_MOST && fe_charges_fit(charges, FE_BANK_SUM_MOST - sum);
}

void fe_record_charges(struct fe_bank *bank, unsigned int series, struct fe_charges charges)
{
	struct fe_tally *tally = &bank->series[series];

	if (!fit(tally, &charges)) {
		lose(tally, series, charges.count);
		return;
	}
	while (charges.count) {
		struct fe_charges some = fe_charges_take(&charges, fe_bucket_least(charges.first, FE_BANK_K));

		charge(tally, series, &some);
	}
}

void fe_tally_break(unsigned int series)
{
	before[series] = 0;
}

void fe_tally_clear(struct fe_tally *tally)
{
	s32 first = fe_bucket(tally->stats.min), last = fe_bucket(tally->stats.max);

	if (tally->stats.count)
		memset(tally->buckets + first, 0, (last - first + 1) * sizeof(u32));
	memset(&tally->stats, 0, sizeof(tally->stats));
	memset(tally->rises, 0, sizeof(tally->rises));
	tally->lost = tally->missed = tally->gaps = 0;
}
