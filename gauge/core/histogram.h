/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The histogram of an instrument with little memory: the buckets of fe_hist.h with 16 bits each, a list of the buckets
 * that have wrapped, and exact statistics.
 *
 * The histogram has two halves.  RESPONSE stores one series in each (falling, rising); PERIODIC stores one signed series,
 * with the negative values in the second half.
 *
 * Buckets are reported while samples arrive.  A sample in a bucket that is already reported belongs to the next report,
 * which has its own statistics; so each report is consistent.  Reporting clears no bucket, because there is no memory for a
 * copy until the host acknowledges the report.  The host subtracts its previous reading, and may read again at any time.
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
	int32_t min, max; /* valid only if count > 0 */
	/* 64-bit numbers in two words: a small machine adds these in half the time */
	uint32_t sum_low, sum_high;
	uint32_t sum_sq_low, sum_sq_high;
};

/* Wraps of a bucket since the last acknowledged report, and how many of them the latest report contains. */
struct histogram_carry {
	uint16_t bucket;
	uint8_t times, reported;
};

struct histogram {
	uint16_t reported; /* the report under way contains the buckets below this one; between reports: all */
	uint8_t takes;     /* number of the last take */
	uint8_t carries;
	struct histogram_carry carry[HISTOGRAM_CARRIES];
	struct histogram_stats current[2], next[2]; /* per series: of the current report and of the next one */
	uint32_t acknowledged[2]; /* per series: values of earlier reports, which the host has received */
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

/* Number of stored values of a series since the start, reported or not. */
static inline uint32_t histogram_stored(const struct histogram *histogram, uint8_t series)
{
	return histogram->acknowledged[series] + histogram->current[series].count + histogram->next[series].count;
}

void histogram_clear(struct histogram *histogram);

/* Adds a value of a series; half 1 of a signed series holds the magnitudes of negative values.
 * False if the value was not stored, because too many buckets have wrapped. */
bool histogram_add(struct histogram *histogram, uint8_t series, uint8_t half, uint32_t magnitude, bool negative);

/* Begins a report of the values since the last one; with `again` it repeats the last one too, which the host has not
 * received. */
void histogram_begin_report(struct histogram *histogram, bool again);

/* The count of a bucket modulo 2^16, plus the wraps since the last acknowledged report.  A report contains all buckets, in
 * ascending order. */
uint32_t histogram_report_bucket(struct histogram *histogram, uint16_t bucket);

#endif
