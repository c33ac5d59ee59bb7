/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The board's ring as a reader sees it: what lies in the folder is the ring, and another process writes it.
 *
 * A recording that the ring removes before all of it is stored stays in the list, so that its loss can be reported.
 */
#ifndef RING_VIEW_H
#define RING_VIEW_H

#include "recording.h"

struct ring_view {
	const char *path;
	int folder; /* -1: cannot be opened */
	struct recording **all; /* oldest first */
	int count, room;
};

/* Lists the folder, and counts intervals that were added. */
void ring_view_scan(struct ring_view *view);
/* The recording of a run; NULL where it is not in the ring. */
struct recording *ring_view_find(const struct ring_view *view, const char *run);
void ring_view_free(struct ring_view *view);

#endif
