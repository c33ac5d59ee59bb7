/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The printed histogram counts each value once, whatever the width of the buckets of its series. */
#include "../histogram.c"

#include "check.h"

int output_open(const char *path, int flags)
{
	(void)path;
	(void)flags;
	return -1;
}

size_t output_write(int fd, const char *text, size_t size, int *error)
{
	(void)fd;
	(void)text;
	*error = 0;
	return size;
}

const char *output_error_text(int error)
{
	(void)error;
	return "";
}

void run_write_failed(struct run *run, const char *what, int error)
{
	(void)run;
	(void)what;
	(void)error;
}

void bad_input(const char *format, ...)
{
	(void)format;
	abort();
}

/* Sum of the counts of all microseconds from 0 on. */
static uint64_t printed(const struct series *series)
{
	uint64_t sum = 0;

	for (int64_t us = 0; us < 40; us++)
		sum += count_between(series, us * NS_PER_US, (us + 1) * NS_PER_US - 1);
	return sum + count_between(series, 40 * NS_PER_US, INT64_MAX);
}

int main(void)
{
	for (unsigned k = 4; k <= SERIES_K; k++) {
		struct series *series = series_new(0, &(struct series_spec){.name = "x", .k = k}, 0);

		check(series && series_map_totals(series));
		series->total.min = 0;
		series->total.max = 50000;
		for (int64_t ns = 0; ns <= 50000; ns += 7) {
			series->totals[series_index(series, ns)]++;
			series->total.count++;
		}
		check(printed(series) == series->total.count);
		series_free(series);
	}
	return failures != 0;
}
