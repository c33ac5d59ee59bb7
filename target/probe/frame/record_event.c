/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events: new maxima and values over the threshold, bounded in number. */
#include "record.h"

#ifndef MAX_EVENTS
#define MAX_EVENTS 10000
#endif

void record_event_line(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
			const char *text)
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
	line_end(run);
}

static bool events_used_up(const struct run *run)
{
	return run->events >= MAX_EVENTS;
}

void record_event(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		  const char *text)
{
	if (!recording(run))
		return;
	if (events_used_up(run)) {
		run->events_dropped++;
		return;
	}
	run->events++;
	record_event_line(run, kind, series, at_mono_ns, value, text);
}

/* The last maximum is the run's: it waits for the end where the events are used up. */
static void record_maximum(struct run *run, struct series *series, const struct event *event)
{
	if (event->value <= series->told_ns) { /* one that came later was read before it */
		run->events_dropped++;
		return;
	}
	series->told_ns = event->value;
	if (!events_used_up(run)) {
		record_event(run, "max", series, event->mono_ns, event->value, NULL);
		return;
	}
	run->events_dropped += series->untold.maximum;
	series->untold = *event;
}

static void record_one(struct run *run, struct series *series, const struct event *event)
{
	if (event->maximum)
		record_maximum(run, series, event);
	if (event->over_threshold)
		record_event(run, "threshold", series, event->mono_ns, event->value, NULL);
}

void record_events(struct run *run, struct series *series)
{
	const struct epoch *epoch = series_flipped(series);
	struct event event;

	for (uint32_t left = epoch ? epoch->events : 0; left && series_next_event(series, &event); left--)
		record_one(run, series, &event);
}

void record_crowded(struct run *run, struct series *series)
{
	if (series->crowded.maximum)
		record_one(run, series, &series->crowded);
	series->crowded.maximum = false;
}
