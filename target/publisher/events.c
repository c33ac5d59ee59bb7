/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events.h"

#include <stdlib.h>
#include <string.h>

#include "json_scan.h"

#define MAX_NUMBER ((INT64_C(1) << 62) - 1)
#define NO_SERIES (-1)

struct event_line {
	int64_t series, value; /* without its sign; 0 without a series */
	size_t begin, size;    /* in the text of all lines */
	bool greatest;         /* of its series */
};

static int64_t number_of(const struct line *line, const char *key, int64_t otherwise)
{
	struct json_value value;
	int64_t number;

	if (!json_member(line->text, line->size, key, &value))
		return otherwise;
	if (value.size && *value.text == '-')
		value = (struct json_value){value.text + 1, value.size - 1};
	return json_count(&value, MAX_NUMBER, &number) ? number : otherwise;
}

static int order(int64_t first, int64_t second)
{
	return (first > second) - (first < second);
}

static int by_place(const void *first, const void *second)
{
	const struct event_line *one = first, *other = second;

	return order((int64_t)one->begin, (int64_t)other->begin);
}

static int by_value(const void *first, const void *second)
{
	const struct event_line *one = first, *other = second;
	int result = order(other->value, one->value);

	return result ? result : by_place(first, second);
}

static int by_series(const void *first, const void *second)
{
	const struct event_line *one = first, *other = second;
	int result = order(one->series, other->series);

	return result ? result : by_value(first, second);
}

static int by_rank(const void *first, const void *second)
{
	const struct event_line *one = first, *other = second;

	return one->greatest != other->greatest ? other->greatest - one->greatest : by_value(first, second);
}

static void sort(struct events *events, int compare(const void *, const void *))
{
	if (events->count)
		qsort(events->all, events->count, sizeof(*events->all), compare);
}

/* Keeps the greatest lines, in their order. */
static void select_greatest(struct events *events)
{
	size_t size = 0, count = 0;
	struct text lines = {0};

	sort(events, by_series);
	for (size_t i = 0; i < events->count; i++) {
		struct event_line *event = &events->all[i];

		event->greatest = event->series != NO_SERIES && (i == 0 || event[-1].series != event->series);
	}
	sort(events, by_rank);
	for (size_t i = 0; i < events->count; i++) {
		if (size + events->all[i].size > events->most)
			continue;
		size += events->all[i].size;
		events->all[count++] = events->all[i];
	}
	events->omitted += events->count - count;
	events->count = count;
	sort(events, by_place);
	for (size_t i = 0; i < count; i++) {
		size_t begin = lines.size;

		text_add(&lines, events->lines.bytes + events->all[i].begin, events->all[i].size);
		events->all[i].begin = begin;
	}
	free(events->lines.bytes);
	events->lines = lines;
}

void events_add(struct events *events, const struct line *line)
{
	struct event_line event = {.begin = events->lines.size, .size = line->size};

	if (line->size > events->most) {
		events->omitted++;
		return;
	}
	event.series = number_of(line, "series", NO_SERIES);
	event.value = event.series == NO_SERIES ? 0 : number_of(line, "value", 0);
	if (events->count == events->room) {
		events->room = 2 * events->room + 64;
		events->all = reallocarray(events->all, events->room, sizeof(*events->all));
		if (!events->all)
			abort();
	}
	events->all[events->count++] = event;
	text_add(&events->lines, line->text, line->size);
	if (events->lines.size > 2 * events->most)
		select_greatest(events);
}

size_t events_take(struct events *events, struct text *text)
{
	size_t omitted;

	if (events->lines.size > events->most)
		select_greatest(events);
	if (events->lines.size)
		text_add(text, events->lines.bytes, events->lines.size);
	omitted = events->omitted;
	events->lines.size = events->count = events->omitted = 0;
	return omitted;
}

void events_free(struct events *events)
{
	free(events->lines.bytes);
	free(events->all);
}
