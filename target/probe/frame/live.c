/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table people watch: redrawn once a second on a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "units.h"

#define DRAW_NS NS_PER_S
#define WIDTH 9 /* of a column of times */

int64_t live_period_ns(const struct run *run)
{
	const struct settings *settings = run->settings;
	bool spoken_for = settings->quiet || settings->json || (settings->record && !strcmp(settings->record, "-"));

	return spoken_for || !isatty(STDOUT_FILENO) ? 0 : DRAW_NS;
}

static void print_duration(FILE *out, const struct run *run, int64_t ns,
			   char *(*const format)(char *buffer, size_t size, int64_t ns))
{
	char text[32];
	int bytes_beyond; /* µ is two bytes and one column */

	if (run->settings->nsecs)
		snprintf(text, sizeof(text), "%lld", (long long)ns);
	else
		format(text, sizeof(text), ns);
	bytes_beyond = strstr(text, "µ") ? 1 : 0;
	fprintf(out, " %*s", WIDTH + bytes_beyond, text);
}

static void print_labels(FILE *out, const struct series *series)
{
	for (int i = 0; i < MAX_LABELS && series->spec.labels[i].name; i++)
		fprintf(out, " %s=%s", series->spec.labels[i].name, series->spec.labels[i].value);
	if (series->spec.bytes)
		fprintf(out, " %lld B", (long long)series->spec.bytes);
}

static void print_row(FILE *out, const struct run *run, const struct series *series)
{
	static const double shares[] = {0.5, 0.99, 0.999};
	int64_t quantiles[3];

	if (series->spec.any_cpu)
		fprintf(out, "   -");
	else
		fprintf(out, "%4d", series->spec.cpu);
	fprintf(out, " %-16s %10llu %7llu", series->spec.name, (unsigned long long)series->total.count,
	       (unsigned long long)series->total_missed);
	if (series->spec.refused)
		fprintf(out, "  refused: %s", series->spec.refused);
	if (series->total.count) {
		series_quantiles(series, shares, quantiles, 3);
		print_duration(out, run, series->total.min, format_least);
		for (int i = 0; i < 3; i++)
			print_duration(out, run, quantiles[i], format_most);
		print_duration(out, run, series->total.max, format_most);
	}
	print_labels(out, series);
	fprintf(out, "\033[K\n" + (isatty(STDOUT_FILENO) ? 0 : 3));
}

int live_table(const struct run *run, FILE *out, bool with_silent)
{
	static const char *const heads[] = {"min", "50%", "99%", "99.9%", "max"};
	int lines = 1;

	fprintf(out, " CPU %-16s %10s %7s", "series", "count", "missed");
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		fprintf(out, " %*s%s", WIDTH - (run->settings->nsecs ? 3 : 0), heads[i], run->settings->nsecs ? " ns" : "");
	putc('\n', out);
	for_each_series(entry, run) {
		if (entry->series->spec.silent && !with_silent)
			continue;
		print_row(out, run, entry->series);
		lines++;
	}
	return lines;
}

static void print_clock(FILE *out, int64_t ns)
{
	long long seconds = (long long)((ns + NS_PER_S / 2) / NS_PER_S);

	if (seconds >= 3600)
		fprintf(out, "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
	else
		fprintf(out, "%lld:%02lld", seconds / 60, seconds % 60);
}

static void print_progress(FILE *out, const struct run *run)
{
	int64_t gone_ns = mono_ns() - (run->counted_ns ? run->counted_ns : run->start_ns);

	fprintf(out, PROGRAM " %s", run->probe->name);
	if (!run->probe->watches)
		fprintf(out, "  policy %s", policy_names[run->settings->policy]);
	if (!run->probe->watches && run->settings->priority)
		fprintf(out, " %lld", (long long)run->settings->priority);
	fprintf(out, run->counted_ns ? "  running " : "  warming up ");
	print_clock(out, gone_ns);
	if (run->counted_ns && run->settings->duration_ns) {
		fprintf(out, ", ");
		print_clock(out, run->settings->duration_ns - gone_ns);
		fprintf(out, " left");
	}
	fprintf(out, "\033[K\n");
}

static void picture(struct run *run)
{
	struct screen *screen = &run->screen;
	FILE *out;

	free(screen->text);
	out = open_memstream(&screen->text, &screen->size);
	if (!out)
		abort();
	if (screen->lines)
		fprintf(out, "\033[%dA", screen->lines);
	print_progress(out, run);
	screen->lines = 1 + live_table(run, out, false);
	fclose(out);
	screen->written = 0;
}

/* A terminal that takes nothing (Ctrl-S) must hold up nothing: it gets the next picture when it has taken this one. */
void live_draw(struct run *run)
{
	struct screen *screen = &run->screen;

	if (screen->written == screen->size)
		picture(run);
	screen->written += output_try(STDOUT_FILENO, screen->text + screen->written, screen->size - screen->written);
}
