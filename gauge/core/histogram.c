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
		entry->bucket = bucket;
		entry->times = 0;
	}
	entry->times++;
	return true;
}

static void stats_add(struct histogram_stats *stats, uint32_t magnitude, bool negative)
{
	int32_t value = negative ? -(int32_t)magnitude : (int32_t)magnitude;
	union product square = product32(magnitude, magnitude);

	if (stats->count == 0 || value < stats->min)
		stats->min = value;
	if (stats->count == 0 || value > stats->max)
		stats->max = value;
	stats->count++;
	stats->sum_low += (uint32_t)value;
	stats->sum_high += (stats->sum_low < (uint32_t)value) - negative;
	stats->sum_sq_low += square.low;
	stats->sum_sq_high += square.high + (stats->sum_sq_low < square.low);
}

bool histogram_add(struct histogram *histogram, uint8_t series, uint8_t half, uint32_t magnitude, bool negative)
{
	uint16_t index = (uint16_t)fe_hist_index(magnitude, GAUGE_K);
	uint16_t *bucket;

	if (index >= HISTOGRAM_HALF)
		return false;
	if (half)
		index += HISTOGRAM_HALF;
	bucket = &histogram->bucket[index];
	if (*bucket == UINT16_MAX && !carry(histogram, index))
		return false;
	++*bucket;
	stats_add(index < histogram->taken ? &histogram->next[series] : &histogram->current[series],
		  magnitude, negative);
	return true;
}

uint32_t histogram_count(const struct histogram *histogram, uint16_t bucket)
{
	uint32_t count = histogram->bucket[bucket];

	for (uint8_t i = 0; i < histogram->carries; i++) {
		if (histogram->carry[i].bucket == bucket)
			count += (uint32_t)histogram->carry[i].times << 16;
	}
	return count;
}

uint32_t histogram_take(struct histogram *histogram, uint16_t bucket)
{
	uint32_t count = histogram_count(histogram, bucket);
	struct histogram_carry *entry = find_carry(histogram, bucket);

	if (entry)
		*entry = histogram->carry[--histogram->carries];
	histogram->bucket[bucket] = 0;
	histogram->taken = bucket + 1;
	return count;
}

void histogram_take_end(struct histogram *histogram)
{
	memcpy(histogram->current, histogram->next, sizeof(histogram->next));
	memset(histogram->next, 0, sizeof(histogram->next));
	histogram->taken = 0;
}
