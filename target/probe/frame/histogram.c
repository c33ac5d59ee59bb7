/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The histogram by microseconds as this field plots it, in cyclictest's form so that its scripts read it too: rows of
 * whole us, a column for each series, and behind them lines that begin with #.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* A number for each series, and one for all of them together. */
struct row {
	const struct run *run;
	int64_t low_ns, high_ns;
};

/* A bucket astride two microseconds belongs to the one it begins in; its width is that of the series. */
static int64_t first_bucket_from(const struct series *series, int64_t ns)
{
	uint32_t index = (uint32_t)series_index(series, ns);
	int64_t lower = (int64_t)fe_hist_lower(index, series->spec.k);

	return lower < ns ? lower + (int64_t)fe_hist_width(index, series->spec.k) : lower;
}

/* Counts the buckets that begin in this range. */
static uint64_t count_between(const struct series *series, int64_t low_ns, int64_t high_ns)
{
	uint64_t count = 0;

	if (low_ns > 0)
		low_ns = first_bucket_from(series, low_ns);
	if (high_ns >= 0 && high_ns < INT64_MAX)
		high_ns = first_bucket_from(series, high_ns + 1) - 1;
	if (!series->total.count || low_ns > series->total.max || high_ns < series->total.min)
		return 0;
	low_ns = low_ns < series->total.min ? series->total.min : low_ns;
	high_ns = high_ns > series->total.max ? series->total.max : high_ns;
	for (int32_t i = series_index(series, low_ns); i <= series_index(series, high_ns); i++)
		count += series_stored(series, i);
	return count;
}

static bool is_printed(const struct series *series)
{
	return !series->spec.silent && !series->spec.refused;
}

static int columns(const struct run *run)
{
	int count = 0;

	for_each_series(entry, run)
		count += is_printed(entry->series);
	return count;
}

/* A sum needs at least two columns. */
static bool summed(const struct run *run)
{
	return run->settings->histogram_sum && columns(run) > 1;
}

/* Values from low_ns to high_ns, of each series and, where that is asked for, of all. */
static void print_counts(FILE *out, const struct row *row, char separator, int digits)
{
	uint64_t sum = 0;
	const char *before = "";
	char between[2] = {separator, '\0'};

	for_each_series(entry, row->run) {
		uint64_t count = is_printed(entry->series) ? count_between(entry->series, row->low_ns, row->high_ns) : 0;

		sum += count;
		if (!is_printed(entry->series))
			continue;
		fprintf(out, "%s%0*llu", before, digits, (unsigned long long)count);
		before = between;
	}
	if (summed(row->run))
		fprintf(out, "%s%0*llu", before, digits, (unsigned long long)sum);
	putc('\n', out);
}

static void print_rows(FILE *out, const struct run *run)
{
	for (int64_t us = 0; us < run->settings->histogram_us; us++) {
		fprintf(out, "%06lld ", (long long)us);
		print_counts(out, &(struct row){run, us * NS_PER_US, (us + 1) * NS_PER_US - 1},
			     '\t', 6);
	}
}

/* Rounded away from the good side, so that no value lies beyond what is printed; -N prints them as they are. */
static int64_t whole(const struct run *run, int64_t ns, int64_t direction)
{
	int64_t us = ns / NS_PER_US, rest = ns % NS_PER_US;

	if (run->settings->nsecs)
		return ns;
	return us + (direction > 0 ? rest > 0 : -(rest < 0));
}

static void print_least(FILE *out, const struct run *run)
{
	fprintf(out, "# Min Latencies:");
	for_each_series(entry, run)
		if (is_printed(entry->series))
			fprintf(out, " %05lld", (long long)whole(run, entry->series->total.min, -1));
}

static void print_means(FILE *out, const struct run *run)
{
	fprintf(out, "\n# Avg Latencies:");
	for_each_series(entry, run) {
		const struct fe_stats *total = &entry->series->total;

		if (is_printed(entry->series))
			fprintf(out, " %05lld", (long long)whole(run, total->count ? total->sum / (int64_t)total->count : 0, 1));
	}
}

static void print_greatest(FILE *out, const struct run *run)
{
	int64_t most_ns = INT64_MIN;

	fprintf(out, "\n# Max Latencies:");
	for_each_series(entry, run) {
		int64_t max_ns = entry->series->total.max;

		if (!is_printed(entry->series))
			continue;
		most_ns = max_ns > most_ns ? max_ns : most_ns;
		fprintf(out, " %05lld", (long long)whole(run, max_ns, 1));
	}
	if (summed(run))
		fprintf(out, " %05lld", (long long)whole(run, most_ns, 1));
}

static void print_columns(FILE *out, const struct run *run)
{
	const char *separator = "# Columns: us,";

	for_each_series(entry, run) {
		if (!is_printed(entry->series))
			continue;
		fprintf(out, "%s %s", separator, entry->series->spec.name);
		if (!entry->series->spec.any_cpu)
			fprintf(out, " of CPU %d", entry->series->spec.cpu);
		separator = ",";
	}
	fprintf(out, "%s\n", summed(run) ? ", all" : "");
}

static void print(FILE *out, const struct run *run)
{
	int64_t end_ns = run->settings->histogram_us * NS_PER_US;

	print_columns(out, run);
	fprintf(out, "# Before the due time: ");
	print_counts(out, &(struct row){run, INT64_MIN + 1, -1}, ' ', 5);
	fprintf(out, "# Histogram\n");
	print_rows(out, run);
	fprintf(out, "# Total: ");
	print_counts(out, &(struct row){run, 0, end_ns - 1}, ' ', 9);
	print_least(out, run);
	print_means(out, run);
	print_greatest(out, run);
	fprintf(out, "\n# Histogram Overflows: ");
	print_counts(out, &(struct row){run, end_ns, INT64_MAX}, ' ', 5);
}

void histogram_open(struct run *run)
{
	const char *path = run->settings->histogram_file;

	if (!path)
		return;
	run->histogram_fd = output_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
	if (run->histogram_fd < 0)
		bad_input("--histfile %s: %s; name a new file in a folder that can be written to", path, output_error_text(errno));
}

bool histogram_is_printed(const struct run *run)
{
	return run->settings->histogram_us && !run->settings->histogram_file;
}

void histogram_print(FILE *out, const struct run *run)
{
	if (histogram_is_printed(run))
		print(out, run);
}

void histogram_write(struct run *run)
{
	char *text;
	size_t size;
	FILE *out;
	int error;

	if (run->histogram_fd < 0)
		return;
	out = open_memstream(&text, &size);
	if (!out)
		abort();
	print(out, run);
	fclose(out);
	output_write(run->histogram_fd, text, size, &error);
	if (error)
		run_write_failed(run, "the histogram cannot be written", error);
	free(text);
}
