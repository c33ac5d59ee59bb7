/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rises and counts at a limit, against what they are by definition: runs of consecutive values, counted one by one. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "series.h"

#define VALUES 20000
#define LIMIT_NS 5000

/* Bursts of all lengths, early values, and single ones far out. */
static void fill(int64_t *values)
{
	int64_t level = 1000;

	for (int i = 0; i < VALUES; i++) {
		if (next_random() % 16 == 0)
			level = (int64_t)(next_random() >> (24 + next_random() % 40)) - 2000;
		values[i] = level + (int64_t)(next_random() % 64) - 32;
	}
}

static uint64_t size_of(int64_t value, bool two_sided)
{
	return value >= 0 ? (uint64_t)value : two_sided ? 0 - (uint64_t)value : 0;
}

/* How many runs of consecutive values lie in this coarse bucket or above. */
static uint64_t runs_from(const int64_t *values, uint32_t edge, bool two_sided)
{
	uint64_t runs = 0;
	bool above = false;

	for (int i = 0; i < VALUES; i++) {
		bool now = fe_hist_index(size_of(values[i], two_sided), SERIES_RISE_K) >= edge;

		runs += now && !above;
		above = now;
	}
	return runs;
}

static struct exceedances counted(const int64_t *values, bool two_sided)
{
	struct exceedances over = {0};
	uint64_t length = 0;

	for (int i = 0; i <= VALUES; i++) {
		bool above = i < VALUES && size_of(values[i], two_sided) > LIMIT_NS;

		if (!above && length) {
			over.runs++;
			over.sum_sq_lo += length * length;
			over.longest = length > over.longest ? length : over.longest;
		}
		length = above ? length + 1 : 0;
		over.exceeded += above;
	}
	return over;
}

/* One flip and one reading: every part must be possible by itself. */
static void read_part(struct series *series)
{
	struct epoch *epoch;
	int64_t sum = 0;

	series_flip(series);
	epoch = series_flipped(series);
	for (size_t edge = 1; edge <= SERIES_EDGES; edge++) {
		sum += epoch->rises[edge];
		check(sum >= 0 && (uint64_t)sum <= epoch->stats.count);
	}
	check(sum == 0);
	series_accumulate(series, epoch);
}

static void flipped_at_random(bool two_sided)
{
	static int64_t values[VALUES];
	struct series *series = series_new(0, &(struct series_spec){.name = "x", .two_sided = two_sided}, 0);
	struct exceedances right;
	int64_t runs = 0;

	series->limit_ns = LIMIT_NS;
	fill(values);
	for (int i = 0; i < VALUES; i++) {
		series_add(series, values[i]);
		if (next_random() % 8 == 0)
			read_part(series);
	}
	read_part(series);
	read_part(series);
	right = counted(values, two_sided);
	check(right.runs > 10 && right.longest > 10);
	check(!memcmp(&series->total_over, &right, sizeof(right)));
	for (uint32_t edge = 1; edge <= SERIES_EDGES; edge++) {
		runs += series->total_rises[edge];
		check((uint64_t)runs == (edge < SERIES_EDGES ? runs_from(values, edge, two_sided) : 0));
	}
	check(series->total_gaps == 0);
	series_free(series);
}

static int64_t runs_at(const struct series *series, uint32_t edge)
{
	int64_t runs = 0;

	for (uint32_t i = 1; i <= edge; i++)
		runs += series->total_rises[i];
	return runs;
}

/* Nobody knows what the lost values were: the run ends there, and what follows is another. */
static void behind_a_gap(void)
{
	struct series *series = series_new(0, &(struct series_spec){.name = "x"}, 0);
	uint32_t edge = fe_hist_index(8000, SERIES_RISE_K);

	series->limit_ns = LIMIT_NS;
	for (int i = 0; i < 3; i++)
		series_add(series, 8000);
	series_add_lost(series, 1000);
	series_add(series, 8000);
	read_part(series);
	check(runs_at(series, edge) == 2 && series->total_gaps == 1);
	check(series->total_over.runs == 2 && series->total_over.longest == 3 && series->total_over.sum_sq_lo == 10);
	series_free(series);
}

/* 2^62 values in one run: the squares exceed 64 bits. */
static void an_endless_run(void)
{
	struct series *series = series_new(0, &(struct series_spec){.name = "x"}, 0);

	series->limit_ns = LIMIT_NS;
	series->run_length = (uint64_t)1 << 62;
	series_add(series, 8000);
	series_add(series, 8000);
	read_part(series);
	check(series->total_over.runs == 0 && series->total_over.longest == ((uint64_t)1 << 62) + 2);
	check(series->total_over.sum_sq_hi == 1 && series->total_over.sum_sq_lo == 4);
	series_free(series);
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		flipped_at_random(false);
		flipped_at_random(true);
	}
	behind_a_gap();
	an_endless_run();
	return failures != 0;
}
