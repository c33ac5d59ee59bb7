/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of the events before an interval; of too many, the greatest ones. */
#ifndef EVENTS_H
#define EVENTS_H

#include "recording.h"
#include "text.h"

struct event_line;

/* Initialized with `most` only: bytes of the lines that are taken. */
struct events {
	size_t most;
	struct text lines;
	struct event_line *all;
	size_t count, room, omitted;
};

void events_add(struct events *events, const struct line *line);
/*
 * Moves the lines to a text, in their order: the greatest one of each series, then the greatest ones of all.  Returns the
 * number of omitted lines.
 */
size_t events_take(struct events *events, struct text *text);
void events_free(struct events *events);

#endif
