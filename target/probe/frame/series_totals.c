/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Totals of a series, added up by the reporter from the epochs that it has read. */
#include <stdlib.h>
#include <string.h>

#include "series.h"

bool series_map_totals(struct series *series)
{
	uint64_t *first = series_memory(SERIES_BUCKETS * sizeof(uint64_t));

	if (first)
		series->totals = first + SERIES_HALF - 1;
	return first != NULL;
}

#define BLOCK 16

/* Most buckets are empty: testing a block at a time makes reading cheap. */
static bool block_empty(const uint32_t *buckets)
{
	uint32_t any = 0;

	for (int i = 0; i < BLOCK; i++)
		any |= buckets[i];
	return any == 0;
}

int32_t epoch_next_filled(const struct epoch *epoch, int32_t index, int32_t last)
{
	while (index + BLOCK <= last + 1 && block_empty(&epoch->buckets[index]))
		index += BLOCK;
	while (index <= last && epoch->buckets[index] == 0)
		index++;
	return index;
}

/* Of an epoch that holds something. */
#define for_each_filled(INDEX, SERIES, EPOCH)                                                                      \
	for (int32_t last_ = series_index(SERIES, (EPOCH)->stats.max),                                             \
		     INDEX = epoch_next_filled(EPOCH, series_index(SERIES, (EPOCH)->stats.min), last_);            \
	     INDEX <= last_; INDEX = epoch_next_filled(EPOCH, INDEX + 1, last_))

static uint64_t *totals_of(struct series *series)
{
	if (!series->totals && !series_map_totals(series))
		abort();
	return series->totals;
}

bool series_repeats(const struct series *series, const struct epoch *epoch)
{
	return series->values && epoch->stats.count && !epoch->buckets[series_index(series, epoch->stats.min)];
}

uint64_t series_stored(const struct series *series, int32_t index)
{
	uint64_t count = series->totals ? series->totals[index] : 0;

	return series->values && series->values->totals ? count + series->values->totals[index] : count;
}

/* The values are left out of the totals of charges, and of an epoch without any: few of its pages and lines of the cache
 * are touched then, where an interval of a thousand values fills hundreds. */
static void complete_buckets(struct series *series, struct epoch *charged, const struct epoch *values)
{
	uint64_t *totals = totals_of(series);

	for_each_filled(i, series, charged)
		totals[i] += charged->buckets[i];
	if (values->stats.count)
		for_each_filled(i, series, values)
			charged->buckets[i] += values->buckets[i];
}

void series_complete(struct series *series, const struct epoch *epoch)
{
	struct epoch *charged;

	if (!series->charged)
		return;
	charged = &series->charged->epochs[epoch - series->epochs];
	if (charged->stats.count)
		complete_buckets(series->charged, charged, epoch);
	fe_stats_merge(&charged->stats, &epoch->stats);
	charged->lost += epoch->lost;
	charged->missed += epoch->missed;
	charged->gaps += epoch->gaps;
	for (size_t edge = 1; edge <= SERIES_EDGES; edge++)
		charged->rises[edge] += epoch->rises[edge];
}

/* Charges are in the totals since their epoch was completed. */
static void accumulate_buckets(struct series *series, struct epoch *epoch)
{
	uint64_t *totals = totals_of(series);

	for_each_filled(i, series, epoch) {
		if (!series->values)
			totals[i] += epoch->buckets[i];
		epoch->buckets[i] = 0;
	}
}

static void accumulate_order(struct series *series, struct epoch *epoch)
{
	struct exceedances *total = &series->total_over, *over = &epoch->over;

	for (size_t edge = 1; edge <= SERIES_EDGES; edge++)
		series->total_rises[edge] += epoch->rises[edge];
	memset(epoch->rises, 0, sizeof(epoch->rises));
	series->total_gaps += epoch->gaps;
	epoch->gaps = 0;
	total->exceeded += over->exceeded;
	total->runs += over->runs;
	total->longest = over->longest > total->longest ? over->longest : total->longest;
	total->sum_sq_lo += over->sum_sq_lo;
	total->sum_sq_hi += over->sum_sq_hi + (total->sum_sq_lo < over->sum_sq_lo);
	*over = (struct exceedances){0};
}

void series_accumulate(struct series *series, struct epoch *epoch)
{
	if (epoch->stats.count && !series_repeats(series, epoch))
		accumulate_buckets(series, epoch);
	fe_stats_merge(&series->total, &epoch->stats);
	series->total_lost += epoch->lost;
	series->total_missed += epoch->missed;
	epoch->stats = (struct fe_stats){0};
	epoch->lost = epoch->missed = 0;
	epoch->events = 0;
	accumulate_order(series, epoch);
	epoch->dropped_max = (struct event){0};
}

static void clear_totals(struct series *series)
{
	int32_t first = series_index(series, series->total.min), last = series_index(series, series->total.max);

	if (series->totals && series->total.count)
		memset(&series->totals[first], 0, (size_t)(last - first + 1) * sizeof(*series->totals));
}

void series_reset_totals(struct series *series)
{
	clear_totals(series);
	series->total = (struct fe_stats){0};
	series->total_lost = series->total_missed = series->total_gaps = 0;
	memset(series->total_rises, 0, sizeof(series->total_rises));
	series->total_over = (struct exceedances){0};
	free((char *)series->deferred_max.culprit);
	series->deferred_max = (struct event){0};
	series->recorded_max_ns = INT64_MIN;
	series->highest_cpu = -1;
}

static int64_t bucket_highest(const struct series *series, int32_t index)
{
	uint64_t lower = fe_hist_lower((uint32_t)abs(index), series->spec.k);

	if (index < 0)
		return -(int64_t)lower;
	return (int64_t)(lower + fe_hist_width((uint32_t)index, series->spec.k) - 1);
}

static uint64_t rank_of(double share, uint64_t count)
{
	uint64_t rank = (uint64_t)(share * (double)count);

	return (double)rank < share * (double)count ? rank + 1 : rank;
}

void series_quantiles(const struct series *series, const double *shares, int64_t *values, int count)
{
	int32_t i = series_index(series, series->total.min), high = series_index(series, series->total.max);
	uint64_t seen = series_stored(series, i);

	for (int n = 0; n < count; n++) {
		if (!series->total.count) {
			values[n] = 0;
			continue;
		}
		while (seen < rank_of(shares[n], series->total.count) && i < high)
			seen += series_stored(series, ++i);
		values[n] = bucket_highest(series, i) < series->total.max ? bucket_highest(series, i) : series->total.max;
	}
}
