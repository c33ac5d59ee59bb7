/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end: how the run ended, and its totals. */
#include <string.h>

#include "record.h"
#include "source.h"

/* At the full resolution, where the intervals have less. */
static void write_buckets(struct json *json, const struct series *series)
{
	int32_t last = series_index(series, series->total.max);

	json_member_int(json, "k", series->spec.k);
	json_key(json, "buckets");
	json_open(json, '[');
	for (int32_t i = series_index(series, series->total.min); series->total.count && i <= last; i++)
		if (series_stored(series, i))
			json_pair(json, i, (int64_t)series_stored(series, i));
	json_close(json, ']');
}

static void write_total(struct json *json, const struct series *series, int64_t k)
{
	json_open(json, '{');
	json_member_int(json, "id", series->id);
	json_member_uint(json, "taken", series->total.count + series->total_lost);
	json_member_uint(json, "stored", series->total.count);
	json_member_uint(json, "lost", series->total_lost);
	json_member_uint(json, "missed", series->total_missed);
	json_stats(json, &series->total);
	if (series_interval_k(series, k) != series->spec.k)
		write_buckets(json, series);
	json_order(json, series, series->total_rises, &series->total_over, series->total_gaps);
	json_close(json, '}');
}

/* How many samples the file of samples holds, and how many there was no room for. */
static void write_samples(struct json *json, const struct run *run)
{
	uint64_t kept = 0, lost = 0;

	if (!run->samples)
		return;
	for (const struct samples *samples = run->samples; samples; samples = samples->next) {
		kept += samples->written_total;
		lost += samples->lost_total;
	}
	json_key(json, "samples");
	json_open(json, '{');
	json_member_uint(json, "kept", kept);
	json_member_uint(json, "lost", lost);
	json_close(json, '}');
}

/* A run that measured nothing read nothing again. */
static void write_settings(struct json *json, const struct run *run)
{
	if (!run->settings_after.count)
		return;
	json_key(json, "settings");
	json_open(json, '[');
	for (int i = 0; i < run->settings_after.count; i++) {
		const struct setting *setting = &run->settings_after.list[i];

		json_open(json, '{');
		json_setting_place(json, setting);
		json_key(json, "in_effect");
		json_raw(json, setting->in_effect, strlen(setting->in_effect));
		json_close(json, '}');
	}
	json_close(json, ']');
}

void record_end(struct run *run)
{
	struct counters since = counters_since(&run->at_begin, &run->at_start);
	struct json *json = &run->line;
	uint64_t dropped = run->events_dropped;

	if (!recording(run))
		return;
	record_deferred_maxima(run);
	line_begin(run, "end");
	json_member_text(json, "outcome", outcome_names[run->outcome]);
	json_reasons(json, run);
	json_instant(json, "at", run->begin);
	json_key(json, "series");
	json_open(json, '[');
	for_each_series(entry, run) {
		write_total(json, entry->series, run->settings->interval_k);
		dropped += atomic_exchange(&entry->series->events_dropped, 0);
	}
	json_close(json, ']');
	json_key(json, "counters");
	json_open(json, '{');
	json_counter_members(json, &since);
	if (run->source)
		run->source->total_counters(json, run);
	json_close(json, '}');
	write_settings(json, run);
	json_member_uint(json, "events_dropped", dropped);
	write_samples(json, run);
	line_end(run);
}
