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

/* Adds to a 64-bit number in two words. */
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

/* Not inlined: stats_add() would save its registers for each value.  Computed from 16-bit halves: a 64-bit product would
 * take a fifth of the stack. */
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
	stats_add(index < histogram->reported ? &histogram->next[series] : &histogram->current[series],
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

/* The host has received the reported wraps, so they are subtracted. */
static void drop_acknowledged_carries(struct histogram *histogram)
{
	uint8_t left = 0;

	for (uint8_t i = 0; i < histogram->carries; i++) {
		struct histogram_carry *entry = &histogram->carry[i];

		entry->times -= entry->reported;
		entry->reported = 0;
		if (entry->times)
			histogram->carry[left++] = *entry;
	}
	histogram->carries = left;
}

void histogram_begin_report(struct histogram *histogram, bool again)
{
	if (!again && histogram->reported) {
		drop_acknowledged_carries(histogram);
		for (uint8_t series = 0; series < 2; series++)
			histogram->acknowledged[series] += histogram->current[series].count;
		memset(histogram->current, 0, sizeof(histogram->current));
	}
	for (uint8_t series = 0; series < 2; series++)
		stats_merge(&histogram->current[series], &histogram->next[series]);
	memset(histogram->next, 0, sizeof(histogram->next));
	histogram->reported = 0;
}

uint32_t histogram_report_bucket(struct histogram *histogram, uint16_t bucket)
{
	uint32_t count = histogram->bucket[bucket];
	struct histogram_carry *entry = find_carry(histogram, bucket);

	if (entry) {
		entry->reported = entry->times;
		count += (uint32_t)entry->times << 16;
	}
	histogram->reported = bucket + 1;
	return count;
}
