/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The board's ring as a reader sees it: the files of a folder, written by another process.
 *
 * A recording that the ring removes before it is completely stored stays in the list, so that its loss can be reported.
 */
#ifndef RING_VIEW_H
#define RING_VIEW_H

#include "recording.h"

struct ring_view {
	const char *path;
	int folder; /* -1: cannot be opened */
	struct recording **all; /* oldest first */
	int count, room;
	char passed[RECORDING_NAME]; /* names up to this one are stored and left out; empty if the ring removed it */
};

/* Lists the folder, and counts added intervals. */
void ring_view_scan(struct ring_view *view);
/* The recording of a run; NULL if it is not in the ring. */
struct recording *ring_view_find(const struct ring_view *view, const char *run);
void ring_view_free(struct ring_view *view);

#endif
