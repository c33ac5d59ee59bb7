/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "histogram.h"

#include <string.h>

#include "product.h"

void histogram_clear(struct histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
}

static struct histogram_carry *find_carry(struct histogram *histogram, uint16_t bucket)
{
	for (uint8_t i = 0; i < histogram->carries; i++) {
		if (histogram->carry[i].bucket == bucket)
			return &histogram->carry[i];
	}
	return NULL;
}

static bool carry(struct histogram *histogram, uint16_t bucket)
{
	struct histogram_carry *entry = find_carry(histogram, bucket);

	if (!entry) {
		if (histogram->carries == HISTOGRAM_CARRIES)
			return false;
		entry = &histogram->carry[histogram->carries++];
		*entry = (struct histogram_carry){ .bucket = bucket };
	}
	if (entry->times == UINT8_MAX)
		return false;
	entry->times++;
	return true;
}

/* A number of 64 bits in two words. */
static inline void wide_add(uint32_t *low, uint32_t *high, uint32_t value)
{
	*low += value;
	if (*low < value)
		++*high;
}

static inline void wide_subtract(uint32_t *low, uint32_t *high, uint32_t value)
{
	if (*low < value)
		--*high;
	*low -= value;
}

/* Apart, because what it needs of registers would be saved for each value; of halves, because a product of 64 bits would
 * take a fifth of the small stack. */
static void __attribute__((noinline)) add_long_square(struct histogram_stats *stats, uint32_t magnitude)
{
	uint16_t high = (uint16_t)(magnitude >> 16), low = (uint16_t)magnitude;
	uint32_t mixed = product16(high, low);

	wide_add(&stats->sum_sq_low, &stats->sum_sq_high, product16(low, low));
	wide_add(&stats->sum_sq_low, &stats->sum_sq_high, mixed << 17);
	stats->sum_sq_high += (mixed >> 15) + product16(high, high);
}

static inline void stats_add(struct histogram_stats *stats, uint32_t magnitude, bool negative)
{
	int32_t value = negative ? -(int32_t)magnitude : (int32_t)magnitude;

	if (stats->count == 0 || value < stats->min)
		stats->min = value;
	if (stats->count == 0 || value > stats->max)
		stats->max = value;
	stats->count++;
	if (negative)
		wide_subtract(&stats->sum_low, &stats->sum_high, magnitude);
	else
		wide_add(&stats->sum_low, &stats->sum_high, magnitude);
	if ((uint16_t)(magnitude >> 16) == 0)
		wide_add(&stats->sum_sq_low, &stats->sum_sq_high, product16((uint16_t)magnitude, (uint16_t)magnitude));
	else
		add_long_square(stats, magnitude);
}

bool histogram_add(struct histogram *histogram, uint8_t series, uint8_t half, uint32_t magnitude, bool negative)
{
	uint16_t index = (uint16_t)fe_hist_index(magnitude, MACHINE_K);
	uint16_t *bucket;

	if (index >= HISTOGRAM_HALF)
		return false;
	if (half)
		index += HISTOGRAM_HALF;
	bucket = &histogram->bucket[index];
	if (*bucket == UINT16_MAX && !carry(histogram, index))
		return false;
	++*bucket;
	stats_add(index < histogram->shown ? &histogram->next[series] : &histogram->current[series],
		  magnitude, negative);
	return true;
}

static void stats_merge(struct histogram_stats *into, const struct histogram_stats *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0 || from->min < into->min)
		into->min = from->min;
	if (into->count == 0 || from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum_low += from->sum_low;
	into->sum_high += from->sum_high + (into->sum_low < from->sum_low);
	into->sum_sq_low += from->sum_sq_low;
	into->sum_sq_high += from->sum_sq_high + (into->sum_sq_low < from->sum_sq_low);
}

/* What was shown has arrived: its wraps are known there. */
static void forget_carries(struct histogram *histogram)
{
	uint8_t left = 0;

	for (uint8_t i = 0; i < histogram->carries; i++) {
		struct histogram_carry *entry = &histogram->carry[i];

		entry->times -= entry->shown;
		entry->shown = 0;
		if (entry->times)
			histogram->carry[left++] = *entry;
	}
	histogram->carries = left;
}

void histogram_show_begin(struct histogram *histogram, bool again)
{
	if (!again && histogram->shown) {
		forget_carries(histogram);
		for (uint8_t series = 0; series < 2; series++)
			histogram->arrived[series] += histogram->current[series].count;
		memset(histogram->current, 0, sizeof(histogram->current));
	}
	for (uint8_t series = 0; series < 2; series++)
		stats_merge(&histogram->current[series], &histogram->next[series]);
	memset(histogram->next, 0, sizeof(histogram->next));
	histogram->shown = 0;
}

uint32_t histogram_show(struct histogram *histogram, uint16_t bucket)
{
	uint32_t count = histogram->bucket[bucket];
	struct histogram_carry *entry = find_carry(histogram, bucket);

	if (entry) {
		entry->shown = entry->times;
		count += (uint32_t)entry->times << 16;
	}
	histogram->shown = bucket + 1;
	return count;
}
