/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The histogram on an instrument of little memory: the buckets of fe_hist.h, 16 bits each, with a
 * list of those that have wrapped, and exact statistics.
 *
 * There are two halves.  RESPONSE keeps one series in each (falling, rising); PERIODIC keeps one
 * signed series, the values below zero in the second half.
 *
 * The buckets can be shown while samples come in: what falls into a bucket already shown belongs to
 * the next time, with statistics of its own, so that what is shown is whole and consistent in itself.
 * No bucket is ever cleared by that: there is no memory to keep what was shown until it is known to
 * have arrived.  So the reader subtracts its earlier reading, and may read again as often as needed.
 */
#ifndef GAUGE_HISTOGRAM_H
#define GAUGE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define FE_HIST_SMALL
#include "fe_hist.h"

#include "hardware.h"

#define HISTOGRAM_HALF ((uint16_t)FE_HIST_BUCKETS(MACHINE_BITS, MACHINE_K))
#define HISTOGRAM_BUCKETS (2 * HISTOGRAM_HALF)
#define HISTOGRAM_CARRIES MACHINE_CARRIES
#define HISTOGRAM_MAX (((uint32_t)1 << MACHINE_BITS) - 1)

struct histogram_stats {
	uint32_t count;
	int32_t min, max; /* mean something only if count > 0 */
	/* numbers of 64 bits in two words, which a small machine adds in half the time */
	uint32_t sum_low, sum_high;
	uint32_t sum_sq_low, sum_sq_high;
};

/* How often a bucket has wrapped since a reading of it has arrived, and how often of that it was shown. */
struct histogram_carry {
	uint16_t bucket;
	uint8_t times, shown;
};

struct histogram {
	uint16_t shown; /* buckets below this one have been shown this time; all of them, between two times */
	uint8_t takes;  /* number of the last take */
	uint8_t carries;
	struct histogram_carry carry[HISTOGRAM_CARRIES];
	struct histogram_stats current[2], next[2]; /* per series: of what is being shown, and of what came since */
	uint32_t arrived[2]; /* per series: values shown before, which have arrived */
	uint16_t bucket[HISTOGRAM_BUCKETS];
};

static inline int64_t histogram_sum(const struct histogram_stats *stats)
{
	return (int64_t)((uint64_t)stats->sum_high << 32 | stats->sum_low);
}

static inline uint64_t histogram_sum_sq(const struct histogram_stats *stats)
{
	return (uint64_t)stats->sum_sq_high << 32 | stats->sum_sq_low;
}

/* Values of a series since the beginning, shown or not. */
static inline uint32_t histogram_stored(const struct histogram *histogram, uint8_t series)
{
	return histogram->arrived[series] + histogram->current[series].count + histogram->next[series].count;
}

void histogram_clear(struct histogram *histogram);

/* Adds a value of a series; half 1 of one signed series holds magnitudes of negative values.
 * False when the value could not be kept: more buckets have wrapped than can be noted. */
bool histogram_add(struct histogram *histogram, uint8_t series, uint8_t half, uint32_t magnitude, bool negative);

/* Before the buckets are shown: the statistics become those of all since the last time, or with `again` of what was
 * shown then, too, because that has not arrived. */
void histogram_show_begin(struct histogram *histogram, bool again);

/* The count of a bucket: modulo 2^16, and the wraps since a reading has arrived.  Buckets must be shown in
 * ascending order, all of them. */
uint32_t histogram_show(struct histogram *histogram, uint16_t bucket);

#endif
