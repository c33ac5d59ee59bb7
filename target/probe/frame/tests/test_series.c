/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One writer that never pauses, one reader that flips: nothing is lost, nothing counted twice. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "series.h"

#define SAMPLES 3000000
#define SEED 88172645463325252u

static struct series *series;
static _Atomic bool written;

static int64_t next_value(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	/* all magnitudes up to 2^40, whose sum still fits */
	return (int64_t)(*state >> (24 + *state % 40)) * (*state & 64 ? 1 : -1);
}

static void *write_samples(void *unused)
{
	uint64_t state = SEED;

	(void)unused;
	for (int i = 0; i < SAMPLES; i++)
		series_add(series, next_value(&state));
	atomic_store(&written, true);
	return NULL;
}

static uint64_t bucket_sum(const struct epoch *epoch)
{
	uint64_t sum = 0;

	for (int32_t i = -(SERIES_HALF - 1); i < SERIES_HALF; i++)
		sum += epoch->buckets[i];
	return sum;
}

static struct epoch *flipped(void)
{
	series_flip(series);
	return series_flipped(series);
}

static void read_once(void)
{
	struct epoch *epoch = flipped();

	check(epoch);
	check(bucket_sum(epoch) == epoch->stats.count);
	series_accumulate(series, epoch);
	check(bucket_sum(epoch) == 0);
}

/* The same values, one after the other, in one thread. */
static struct fe_stats expected(uint64_t *counts)
{
	struct fe_stats stats = {0};
	uint64_t state = SEED;

	for (int i = 0; i < SAMPLES; i++) {
		int64_t value = next_value(&state);

		fe_stats_add(&stats, value);
		counts[series_bucket(value) + SERIES_HALF - 1]++;
	}
	return stats;
}

static void concurrent(void)
{
	uint64_t *counts = calloc(SERIES_BUCKETS, sizeof(*counts));
	struct fe_stats right = expected(counts);
	pthread_t writer;
	int flips = 0;

	series = series_new(0, &(struct series_spec){.name = "x"}, 0);
	pthread_create(&writer, NULL, write_samples, NULL);
	for (; !atomic_load(&written); flips++)
		read_once();
	pthread_join(writer, NULL);
	read_once();
	read_once();
	printf("%d flips\n", flips);
	check(flips > 10);
	check(series->total.count == SAMPLES);
	check(series->total.min == right.min && series->total.max == right.max && series->total.sum == right.sum);
	check(series->total.sum_sq_lo == right.sum_sq_lo && series->total.sum_sq_hi == right.sum_sq_hi);
	for (int32_t i = 0; i < SERIES_BUCKETS; i++)
		check((series->totals - (SERIES_HALF - 1))[i] == counts[i]);
	series_free(series);
	free(counts);
}

/* Of each recording: the events are of values in it, the greatest is told, and no run above the limit began before it. */
static void check_recording(const struct epoch *epoch)
{
	int64_t told = INT64_MIN;
	struct event event;

	for (uint32_t left = epoch->events; left; left--)
		if (series_next_event(series, &event) && event.maximum)
			told = event.value;
	told = epoch->dropped_max.maximum ? epoch->dropped_max.value : told;
	check(!epoch->stats.count || told == epoch->stats.max);
	check(!epoch->over.exceeded || (epoch->over.runs && epoch->over.longest <= epoch->over.exceeded));
}

/* Every flip begins a recording while the writer goes on. */
static void recordings(void)
{
	uint64_t count = 0;
	pthread_t writer;
	int begun = 0;

	atomic_store(&written, false);
	series = series_new(0, &(struct series_spec){.name = "x"}, 0);
	series->limit_ns = 1000;
	pthread_create(&writer, NULL, write_samples, NULL);
	for (bool last = false; !last; begun++) {
		struct epoch *epoch;

		last = atomic_load(&written);
		series_begin_with_flip(series);
		epoch = flipped();
		check_recording(epoch);
		series_accumulate(series, epoch);
		count += series->total.count;
		series_reset_totals(series);
		check(series->total.count == 0);
	}
	pthread_join(writer, NULL);
	check(begun > 10 && count == SAMPLES);
	for (int32_t i = 0; i < SERIES_BUCKETS; i++)
		check((series->totals - (SERIES_HALF - 1))[i] == 0);
	series_free(series);
}

/* What came before is of another recording, be it long ago. */
static void nothing_before(void)
{
	struct epoch *epoch;

	series = series_new(0, &(struct series_spec){.name = "x"}, 0);
	series->limit_ns = 10;
	series_add(series, 1000);
	series_begin_with_flip(series);
	series_accumulate(series, flipped());
	series_accumulate(series, flipped()); /* an interval without a value */
	check(series_next_event(series, &(struct event){0}));
	series_add(series, 500);
	epoch = flipped();
	check(epoch->events == 1 && epoch->over.runs == 1 && epoch->over.longest == 1 && series->magnitudes == 500);
	series_accumulate(series, epoch);
	series_add(series, 400);
	epoch = flipped();
	check(epoch->events == 0 && epoch->over.runs == 0 && epoch->over.longest == 2);
	series_free(series);
}

static void folded(void)
{
	series = series_new(0, &(struct series_spec){.name = "x"}, 0);
	for (unsigned k = SERIES_RISE_K; k <= SERIES_K; k++)
		for (int64_t value = -5000000; value < 5000000; value += 997) {
			int32_t wide = (int32_t)fe_hist_index(fe_magnitude(value), k);

			check(series_folded(series, series_bucket(value), k) == (value < 0 ? -wide : wide));
		}
	series_free(series);
}

static void full_bucket(void)
{
	struct epoch *epoch;

	series = series_new(0, &(struct series_spec){.name = "x"}, 0);
	series_add(series, 5);
	series->epochs[0].buckets[5] = UINT32_MAX;
	series_add(series, 5);
	epoch = flipped();
	check(epoch->lost == 1 && epoch->stats.count == 1 && epoch->buckets[5] == UINT32_MAX);
	series_free(series);
}

/* Values as a realtime clock makes them that is set from 1970 to now, and charges for what was missed. */
static void enormous(void)
{
	const int64_t since_1970 = 1790000000000000000;
	struct epoch *epoch;

	series = series_new(0, &(struct series_spec){.name = "x", .silent = true}, 0);
	for (int i = 0; i < 10; i++) {
		series_add(series, since_1970);
		series_accumulate(series, flipped());
	}
	series_add(series, -since_1970);
	series_add(series, 7);
	series_add(series, INT64_MAX);
	series_add(series, -INT64_MAX);
	epoch = flipped();
	check(epoch->stats.count == 1 && epoch->stats.sum == 7 && epoch->lost == 3);
	series_accumulate(series, epoch);
	check(series->total.count == 3 && series->total_lost == 11 && series->total.sum == 2 * since_1970 + 7);
	check(series->total.sum_sq_hi == 347389218086080475u && series->total.sum_sq_lo == 12918770496857702449u);
	series_free(series);
}

static void events(void)
{
	_Atomic bool stop = false;
	const struct event *dropped;
	struct event event;

	series = series_new(0, &(struct series_spec){.name = "x"}, 1000);
	series->stop_at_threshold = &stop;
	series->trace_fd = memfd_create("switch", 0);
	series_add(series, -7); /* the first value is a new maximum, whatever it is */
	check(series_next_event(series, &event) && event.value == -7 && event.maximum && !event.over_threshold);
	series_add(series, 1000);
	check(series_next_event(series, &event) && event.maximum && !event.over_threshold && !stop);
	check(lseek(series->trace_fd, 0, SEEK_END) == 0);
	series_add(series, 2000);
	check(stop && lseek(series->trace_fd, 0, SEEK_END) == 1);
	series_add(series, 1500);
	check(series_next_event(series, &event) && event.maximum && event.over_threshold);
	check(series_next_event(series, &event) && !event.maximum && event.over_threshold && event.value == 1500);
	check(!series_next_event(series, &event));
	for (int i = 0; i < EVENTS + 3; i++)
		series_add(series, 3000 + i);
	check(series->events_dropped == 2 * 2); /* each was a maximum and over the threshold */
	series_flip(series);
	dropped = &series_flipped(series)->dropped_max;
	check(dropped->maximum && dropped->value == 3000 + EVENTS + 2);
	series_accumulate(series, series_flipped(series));
	check(!dropped->maximum);
	close(series->trace_fd);
	series_free(series);
}

static void quantiles(void)
{
	static const double shares[] = {0.001, 0.5, 0.99, 1.0};
	int64_t values[4];

	series = series_new(0, &(struct series_spec){.name = "x"}, 0);
	series_quantiles(series, shares, values, 4);
	check(values[0] == 0 && values[3] == 0);
	for (int i = -100; i < 900; i++)
		series_add(series, i);
	series_accumulate(series, flipped());
	series_quantiles(series, shares, values, 4);
	check(values[0] == -100 && values[1] == 399 && values[2] == 889 && values[3] == 899);
	series_free(series);
}

int main(void)
{
	concurrent();
	recordings();
	nothing_before();
	folded();
	full_bucket();
	enormous();
	events();
	quantiles();
	return failures != 0;
}
