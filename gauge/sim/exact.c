/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The gauge in simulated time with a board of exactly known delays, driven by a script on standard
 * input.  What the board has done is kept in a histogram of its own, to compare with the gauge's.
 *
 *   say TEXT             send a line, run until the reply's last line, print the reply
 *   type TEXT            send a line without waiting
 *   run CYCLES           let time pass
 *   follow MIN MAX       the board answers each edge after MIN to MAX cycles, drawn evenly
 *   deaf N               the board misses the next N edges
 *   square PERIOD JITTER LOW N   the board falls N times, every PERIOD + 0 to JITTER cycles, low for LOW
 *   still                the board does nothing
 *   expect PERIOD        deviations of falls are counted from this period
 *   truth K              print the board's own histograms in the gauge's words, and clear them
 *   trace FILE           from now on write each edge, `out|in LEVEL CYCLE`, one a line
 *   raw FILE             from now on write each byte of the serial line
 *   cost                 print cycles simulated and CPU time used
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fe_hist.h"
#include "machine.h"

#define MAX_K 8
#define BITS 32
#define HALF FE_HIST_BUCKETS(BITS, MAX_K)
#define TELL_LIMIT_CYCLES (60ull * MACHINE_HZ)
#define PENDING 64
#define KEPT 4000000

struct edge {
	int level;
	struct bench *bench;
	long delay; /* what the board took for it; -1: not an answer */
	int used;
};

struct bench {
	struct machine machine;
	uint32_t random;
	unsigned long delay_min, delay_max, deaf;
	int follows;
	avr_cycle_count_t last_in;
	struct edge pending[PENDING];
	unsigned long period, jitter, low, falls;
	avr_cycle_count_t last_fall;
	int have_fall;
	unsigned long expected;
	int64_t *kept[2];
	size_t count[2];
	char line[256];
	size_t line_length;
	int replied, echo, in_frame;
	FILE *trace, *raw;
};

static uint32_t draw(struct bench *bench)
{
	bench->random = bench->random * 1664525u + 1013904223u;
	return bench->random;
}

static unsigned long draw_within(struct bench *bench, unsigned long min, unsigned long max)
{
	return min + (unsigned long)(((uint64_t)draw(bench) * (max - min + 1)) >> 32);
}

static void keep(struct bench *bench, int series, int64_t value)
{
	if (bench->count[series] < KEPT)
		bench->kept[series][bench->count[series]++] = value;
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
	keep(edge->bench, edge->level, edge->delay);
	drive_input(edge->bench, edge->level, when);
	return 0;
}

static struct edge *free_edge(struct bench *bench)
{
	for (int i = 0; i < PENDING; i++) {
		if (!bench->pending[i].used)
			return &bench->pending[i];
	}
	fprintf(stderr, "the simulated board has fallen too far behind\n");
	exit(1);
}

/* The board follows its input, one answer after the other. */
static void on_output(void *context, int level, avr_cycle_count_t when)
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
		keep(bench, 0, (int64_t)(when - bench->last_fall) - (int64_t)bench->expected);
	bench->last_fall = when;
	bench->have_fall = 1;
	bench->falls--;
	avr_cycle_timer_register(avr, rise > avr->cycle ? rise - avr->cycle : 1, on_rise, bench);
	return 0;
}

static void stand_still(struct bench *bench)
{
	bench->follows = 0;
	bench->falls = 0;
	avr_cycle_timer_cancel(bench->machine.avr, on_fall, bench);
	avr_cycle_timer_cancel(bench->machine.avr, on_rise, bench);
	drive_input(bench, 1, bench->machine.avr->cycle);
}

static void end_line(struct bench *bench)
{
	bench->line[bench->line_length] = 0;
	bench->line_length = 0;
	if (bench->echo)
		puts(bench->line);
	if (!strncmp(bench->line, "ok", 2) || !strncmp(bench->line, "error", 5))
		bench->replied = 1;
}

static void on_byte(void *context, uint8_t byte)
{
	struct bench *bench = context;

	if (bench->raw)
		fputc(byte, bench->raw);
	if (byte == 0)
		bench->in_frame = !bench->in_frame; /* raw samples are no part of replies */
	else if (bench->in_frame)
		return;
	else if (byte == '\n')
		end_line(bench);
	else if (byte != '\r' && bench->line_length < sizeof(bench->line) - 1)
		bench->line[bench->line_length++] = (char)byte;
}

static void step(struct bench *bench)
{
	if (machine_step(&bench->machine)) {
		fprintf(stderr, "the firmware has crashed\n");
		exit(1);
	}
}

static void run(struct bench *bench, avr_cycle_count_t cycles)
{
	avr_cycle_count_t end = bench->machine.avr->cycle + cycles;

	while (bench->machine.avr->cycle < end)
		step(bench);
}

static void type(struct bench *bench, const char *text)
{
	for (const char *c = text;; c++) {
		while (!machine_give(&bench->machine, *c ? (uint8_t)*c : '\n'))
			step(bench);
		if (!*c)
			return;
	}
}

static void say(struct bench *bench, const char *text)
{
	avr_cycle_count_t limit = bench->machine.avr->cycle + TELL_LIMIT_CYCLES;

	bench->replied = 0;
	bench->echo = 1;
	type(bench, text);
	while (!bench->replied && bench->machine.avr->cycle < limit)
		step(bench);
	bench->echo = 0;
	if (!bench->replied)
		puts("silence");
}

static void square(struct bench *bench, const char *arguments)
{
	if (sscanf(arguments, "%lu %lu %lu %lu", &bench->period, &bench->jitter, &bench->low, &bench->falls) != 4) {
		fprintf(stderr, "square wants PERIOD JITTER LOW N\n");
		exit(2);
	}
	bench->have_fall = 0;
	bench->follows = 0;
	avr_cycle_timer_register(bench->machine.avr, bench->period, on_fall, bench);
}

static void print_half(const uint32_t *buckets, uint32_t size, int series, const char *sign)
{
	for (uint32_t i = 0; i < size; i++) {
		if (buckets[i])
			printf("b %d %s%" PRIu32 " %" PRIu32 "\n", series, sign, i, buckets[i]);
	}
}

static void tell_truth(struct bench *bench, unsigned k)
{
	static uint32_t buckets[2][HALF];

	for (int series = 0; series < 2; series++) {
		struct fe_stats stats = { 0 };

		memset(buckets, 0, sizeof(buckets));
		for (size_t i = 0; i < bench->count[series]; i++) {
			int64_t value = bench->kept[series][i];

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

static FILE *open_output(const char *path)
{
	FILE *file = fopen(path, "wb");

	if (!file) {
		perror(path);
		exit(2);
	}
	return file;
}

static void tell_cost(const struct bench *bench)
{
	printf("cycles=%" PRIu64 " cpu_ms=%ld\n", (uint64_t)bench->machine.avr->cycle,
	       (long)(clock() / (CLOCKS_PER_SEC / 1000)));
}

static int execute(struct bench *bench, const char *command, const char *arguments)
{
	if (!strcmp(command, "say")) {
		say(bench, arguments);
	} else if (!strcmp(command, "type")) {
		type(bench, arguments);
	} else if (!strcmp(command, "run")) {
		run(bench, strtoull(arguments, NULL, 10));
	} else if (!strcmp(command, "follow")) {
		bench->follows = sscanf(arguments, "%lu %lu", &bench->delay_min, &bench->delay_max) == 2;
	} else if (!strcmp(command, "deaf")) {
		bench->deaf = strtoul(arguments, NULL, 10);
	} else if (!strcmp(command, "square")) {
		square(bench, arguments);
	} else if (!strcmp(command, "still")) {
		stand_still(bench);
	} else if (!strcmp(command, "expect")) {
		bench->expected = strtoul(arguments, NULL, 10);
	} else if (!strcmp(command, "truth")) {
		tell_truth(bench, (unsigned)strtoul(arguments, NULL, 10));
	} else if (!strcmp(command, "trace")) {
		bench->trace = open_output(arguments);
	} else if (!strcmp(command, "raw")) {
		bench->raw = open_output(arguments);
	} else if (!strcmp(command, "cost")) {
		tell_cost(bench);
	} else {
		fprintf(stderr, "'%s' is no command of the script\n", command);
		return -1;
	}
	fflush(stdout);
	return 0;
}

static int play(struct bench *bench)
{
	char line[512];

	while (fgets(line, sizeof(line), stdin)) {
		char *arguments;

		line[strcspn(line, "\n")] = 0;
		arguments = line + strcspn(line, " ");
		if (*arguments)
			*arguments++ = 0;
		if (*line && execute(bench, line, arguments))
			return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct bench bench = { .random = 12345 };
	int status;

	if (argc != 3) {
		fprintf(stderr, "usage: %s MCU FIRMWARE.elf <SCRIPT\n", argv[0]);
		return 2;
	}
	for (int series = 0; series < 2; series++) {
		bench.kept[series] = malloc(KEPT * sizeof(int64_t));
		if (!bench.kept[series])
			return 1;
	}
	if (machine_load(&bench.machine, argv[1], argv[2], on_output, on_byte, &bench))
		return 2;
	status = play(&bench);
	if (bench.trace)
		fclose(bench.trace);
	if (bench.raw)
		fclose(bench.raw);
	return status;
}
