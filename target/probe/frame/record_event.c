/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events: new maxima and values over the threshold, bounded in number. */
#include <stdlib.h>
#include <string.h>

#include "record.h"

#ifndef MAX_EVENTS
#define MAX_EVENTS 10000
#endif

void record_event_line(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		       const char *text, const char *culprit)
{
	struct json *json = &run->line;
	int cpu = series ? (series->spec.any_cpu ? series->highest_cpu : series->spec.cpu) : -1;

	line_begin(run, "event");
	json_member_text(json, "kind", kind);
	json_instant(json, "at", (struct instant){at_mono_ns, at_mono_ns + run->machine.wall_offset_ns});
	if (series)
		json_member_int(json, "series", series->id);
	if (cpu >= 0)
		json_member_int(json, "cpu", cpu);
	json_member_int(json, "value", value);
	if (text)
		json_member_text(json, "text", text);
	if (culprit) {
		json_key(json, "culprit");
		json_raw(json, culprit, strlen(culprit));
	}
	line_end(run);
}

static bool events_used_up(const struct run *run)
{
	return run->events >= MAX_EVENTS;
}

static void record_bounded(struct run *run, const char *kind, const struct series *series, const struct event *event,
			   const char *text)
{
	if (!recording(run))
		return;
	if (events_used_up(run)) {
		run->events_dropped++;
		return;
	}
	run->events++;
	record_event_line(run, kind, series, event->mono_ns, event->value, text, event->culprit);
}

void record_event(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		  const char *text)
{
	record_bounded(run, kind, series, &(struct event){.mono_ns = at_mono_ns, .value = value}, text);
}

void record_deferred_maxima(struct run *run)
{
	if (!recording(run))
		return;
	for_each_series(entry, run) {
		struct event *event = &entry->series->deferred_max;

		if (event->maximum)
			record_event_line(run, "max", entry->series, event->mono_ns, event->value, NULL, event->culprit);
		event->maximum = false;
	}
}

static void defer_maximum(struct series *series, const struct event *event)
{
	free((char *)series->deferred_max.culprit);
	series->deferred_max = *event;
	series->deferred_max.culprit = event->culprit ? strdup(event->culprit) : NULL;
}

/* The last maximum is that of the run: beyond the limit of events, it is deferred until the recording ends. */
static void record_maximum(struct run *run, struct series *series, const struct event *event)
{
	if (event->value <= series->recorded_max_ns) { /* a later, higher one was read first */
		run->events_dropped++;
		return;
	}
	series->recorded_max_ns = event->value;
	if (!events_used_up(run)) {
		record_bounded(run, "max", series, event, NULL);
		return;
	}
	run->events_dropped += series->deferred_max.maximum;
	defer_maximum(series, event);
}

void record_source_event(struct run *run, struct series *series, const struct event *event)
{
	if (event->maximum)
		record_maximum(run, series, event);
	if (event->over_threshold)
		record_bounded(run, "threshold", series, event, NULL);
}

void record_events(struct run *run, struct series *series)
{
	const struct epoch *epoch = series_flipped(series);
	struct event event;

	for (uint32_t left = epoch ? epoch->events : 0; left && series_next_event(series, &event); left--)
		record_source_event(run, series, &event);
	if (epoch && epoch->dropped_max.maximum) /* later than those for which the ring had room */
		record_source_event(run, series, &epoch->dropped_max);
}
