/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Summary at the end of the run: text or JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

static const double shares[] = {0.5, 0.95, 0.99, 0.999, 0.9999, 0.99999};
static const char *const share_names[] = {"p50_ns", "p95_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "p99_999_ns"};
enum { SHARES = sizeof(shares) / sizeof(shares[0]) };

static struct counters whole_run(const struct run *run)
{
	return counters_since(&run->at_begin, &run->at_start);
}

/*
 * JSON -------------------------------------------------------------------------------------------
 */

static void json_values(struct json *json, const struct series *series)
{
	int64_t quantiles[SHARES];

	series_quantiles(series, shares, quantiles, SHARES);
	json_member_int(json, "min_ns", series->total.min);
	json_key(json, "mean_ns");
	json_mean(json, series->total.sum, series->total.count);
	for (int i = 0; i < SHARES; i++)
		json_member_int(json, share_names[i], quantiles[i]);
	json_member_int(json, "max_ns", series->total.max);
}

static void json_series(struct json *json, const struct series *series)
{
	json_open(json, '{');
	json_member_text(json, "name", series->spec.name);
	if (!series->spec.any_cpu)
		json_member_int(json, "cpu", series->spec.cpu);
	json_labels(json, series->spec.labels);
	if (series->spec.bytes)
		json_member_int(json, "bytes", series->spec.bytes);
	if (series->spec.refused)
		json_member_text(json, "refused", series->spec.refused);
	json_member_uint(json, "count", series->total.count);
	json_member_uint(json, "lost", series->total_lost);
	json_member_uint(json, "missed", series->total_missed);
	if (series->total.count)
		json_values(json, series);
	json_close(json, '}');
}

static void print_json(FILE *out, const struct run *run)
{
	struct counters counters = whole_run(run);
	struct json json = {0};

	json_open(&json, '{');
	json_member_text(&json, "run_id", run->run_id);
	json_member_text(&json, "probe", run->probe->name);
	json_member_text(&json, "outcome", outcome_names[run->outcome]);
	json_reasons(&json, run);
	json_member_int(&json, "duration_ns", run->begin.mono_ns - run->counted_ns);
	json_key(&json, "series");
	json_open(&json, '[');
	for_each_series(entry, run)
		json_series(&json, entry->series);
	json_close(&json, ']');
	json_counters(&json, &counters);
	json_close(&json, '}');
	json_newline(&json);
	fwrite(json.text, 1, json.used, out);
	json_free(&json);
}

/*
 * For people -------------------------------------------------------------------------------------
 */

/* All counters but idle time, which comes last and is no disturbance. */
static void print_counters(FILE *out, const struct run *run)
{
	struct counters counters = whole_run(run);
	const char *separator = "system activity: ";

	for (int i = 0; i < COUNTER_LEAST_IDLE_NS; i++) {
		if (!counters.known[i] || counters.value[i] == 0)
			continue;
		fprintf(out, "%s%s %lld", separator, counter_names[i], (long long)counters.value[i]);
		separator = ", ";
	}
	if (*separator == ',')
		putc('\n', out);
}

static void print_differences(FILE *out, const struct run *run)
{
	for (int i = 0; i < run->settings_before.count; i++)
		if (run->settings_before.list[i].differs)
			fprintf(out, "not in effect as requested: %s\n", run->settings_before.list[i].reason);
	if (!settings_real_time(run))
		fputs("This was not a real-time run.\n", out);
}

static void print_findings(FILE *out, const struct run *run)
{
	live_table(run, out, true);
	print_counters(out, run);
	print_differences(out, run);
}

/* Scripts for cyclictest take each line before a histogram that has no # for a row of it. */
static void print_findings_as_comments(FILE *out, const struct run *run)
{
	char *text;
	size_t size;
	FILE *lines = open_memstream(&text, &size);

	if (!lines)
		abort();
	print_findings(lines, run);
	fclose(lines);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(out, "# %s\n", line);
	free(text);
}

static void print_text(FILE *out, const struct run *run)
{
	if (run->screen.text)
		fprintf(out, "%s\033[%dA\033[J", run->screen.text + run->screen.written, run->screen.lines);
	if (histogram_is_printed(run))
		print_findings_as_comments(out, run);
	else
		print_findings(out, run);
	histogram_print(out, run);
}

void summary_print(struct run *run)
{
	char *text;
	size_t size;
	FILE *out;
	int error;

	histogram_write(run);
	if (run->settings->record && !strcmp(run->settings->record, "-"))
		return;
	out = open_memstream(&text, &size);
	if (!out)
		abort();
	if (run->settings->json)
		print_json(out, run);
	else if (run->outcome != OUTCOME_NOT_APPLICABLE)
		print_text(out, run);
	fclose(out);
	output_write(STDOUT_FILENO, text, size, &error);
	if (error)
		run_write_failed(run, "the summary cannot be written", error);
	free(text);
}
