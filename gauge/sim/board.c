/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "board.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fe_hist.h"

#define MAX_K 8
#define BITS 32
#define HALF FE_HIST_BUCKETS(BITS, MAX_K)
#define MAX_SAMPLES 4000000

static uint32_t draw(struct bench *bench)
{
	bench->random = bench->random * 1664525u + 1013904223u;
	return bench->random;
}

static unsigned long draw_within(struct bench *bench, unsigned long min, unsigned long max)
{
	return min + (unsigned long)(((uint64_t)draw(bench) * (max - min + 1)) >> 32);
}

static void record_sample(struct bench *bench, int series, int64_t value)
{
	if (bench->count[series] < MAX_SAMPLES)
		bench->samples[series][bench->count[series]++] = value;
}

static void trace(struct bench *bench, const char *way, int level, avr_cycle_count_t when)
{
	if (bench->trace)
		fprintf(bench->trace, "%s %d %" PRIu64 "\n", way, level, (uint64_t)when);
}

static void drive_input(struct bench *bench, int level, avr_cycle_count_t when)
{
	trace(bench, "in", level, when);
	timer16_input(&bench->machine.timer, level, when);
}

static avr_cycle_count_t on_answer(avr_t *avr, avr_cycle_count_t when, void *context)
{
	struct edge *edge = context;

	(void)avr;
	edge->used = 0;
	record_sample(edge->bench, edge->level, edge->delay);
	drive_input(edge->bench, edge->level, when);
	return 0;
}

static struct edge *free_edge(struct bench *bench)
{
	for (int i = 0; i < PENDING; i++) {
		if (!bench->pending[i].used)
			return &bench->pending[i];
	}
	fprintf(stderr, "too many answers of the simulated board are pending\n");
	exit(1);
}

/* The board follows its input, with answers in order. */
void board_output_changed(void *context, int level, avr_cycle_count_t when)
{
	struct bench *bench = context;
	avr_cycle_count_t now = bench->machine.avr->cycle, at;
	struct edge *edge;

	trace(bench, "out", level, when);
	if (!bench->follows)
		return;
	if (bench->deaf) {
		bench->deaf--;
		return;
	}
	at = when + draw_within(bench, bench->delay_min, bench->delay_max);
	if (at <= bench->last_in)
		at = bench->last_in + 1;
	bench->last_in = at;
	edge = free_edge(bench);
	*edge = (struct edge){ .level = level, .bench = bench, .delay = (long)(at - when), .used = 1 };
	if (at <= now)
		on_answer(bench->machine.avr, at, edge);
	else
		avr_cycle_timer_register(bench->machine.avr, at - now, on_answer, edge);
}

static avr_cycle_count_t on_fall(avr_t *avr, avr_cycle_count_t when, void *context);

static avr_cycle_count_t on_rise(avr_t *avr, avr_cycle_count_t when, void *context)
{
	struct bench *bench = context;
	avr_cycle_count_t next = bench->last_fall + bench->period + draw_within(bench, 0, bench->jitter);

	(void)when;
	drive_input(bench, 1, when);
	if (bench->falls)
		avr_cycle_timer_register(avr, next > avr->cycle ? next - avr->cycle : 1, on_fall, bench);
	return 0;
}

static avr_cycle_count_t on_fall(avr_t *avr, avr_cycle_count_t when, void *context)
{
	struct bench *bench = context;
	avr_cycle_count_t rise = when + bench->low;

	drive_input(bench, 0, when);
	if (bench->have_fall)
		record_sample(bench, 0, (int64_t)(when - bench->last_fall) - (int64_t)bench->expected);
	bench->last_fall = when;
	bench->have_fall = 1;
	bench->falls--;
	avr_cycle_timer_register(avr, rise > avr->cycle ? rise - avr->cycle : 1, on_rise, bench);
	return 0;
}

void board_stop(struct bench *bench)
{
	bench->follows = 0;
	bench->falls = 0;
	avr_cycle_timer_cancel(bench->machine.avr, on_fall, bench);
	avr_cycle_timer_cancel(bench->machine.avr, on_rise, bench);
	drive_input(bench, 1, bench->machine.avr->cycle);
}

int board_square(struct bench *bench, const char *arguments)
{
	if (sscanf(arguments, "%lu %lu %lu %lu", &bench->period, &bench->jitter, &bench->low, &bench->falls) != 4)
		return -1;
	bench->have_fall = 0;
	bench->follows = 0;
	avr_cycle_timer_register(bench->machine.avr, bench->period, on_fall, bench);
	return 0;
}

static void print_half(const uint32_t *buckets, uint32_t size, int series, const char *sign)
{
	for (uint32_t i = 0; i < size; i++) {
		if (buckets[i])
			printf("b %d %s%" PRIu32 " %" PRIu32 "\n", series, sign, i, buckets[i]);
	}
}

void board_print_histograms(struct bench *bench, unsigned k)
{
	static uint32_t buckets[2][HALF];

	for (int series = 0; series < 2; series++) {
		struct fe_stats stats = { 0 };

		memset(buckets, 0, sizeof(buckets));
		for (size_t i = 0; i < bench->count[series]; i++) {
			int64_t value = bench->samples[series][i];

			buckets[value < 0][fe_hist_index(fe_magnitude(value), k)]++;
			fe_stats_add(&stats, value);
		}
		print_half(buckets[0], HALF, series, "");
		print_half(buckets[1], HALF, series, "-");
		printf("series=%d count=%" PRIu64 " min=%" PRId64 " max=%" PRId64 " sum=%" PRId64 " sum_sq=%" PRIu64 "\n",
		       series, (uint64_t)stats.count, (int64_t)stats.min, (int64_t)stats.max, (int64_t)stats.sum,
		       (uint64_t)stats.sum_sq_lo);
		bench->count[series] = 0;
	}
	puts("ok");
}

int board_begin(struct bench *bench)
{
	for (int series = 0; series < 2; series++) {
		bench->samples[series] = malloc(MAX_SAMPLES * sizeof(int64_t));
		if (!bench->samples[series])
			return -1;
	}
	return 0;
}
