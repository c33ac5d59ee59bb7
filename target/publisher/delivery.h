/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chooses the next recording to publish, its position, and the time of a retry, from the takers' answers alone.
 *
 * This state does not survive the process.  After a start the first chunk of each recording is published, and the answer
 * states how much of it is stored.
 */
#ifndef DELIVERY_H
#define DELIVERY_H

#include "ring_view.h"

/* The recording whose next chunk is to be published now; NULL: none. */
struct recording *delivery_next(struct ring_view *view, int64_t now_ns);
/* Notes that it was published up to a position. */
void delivery_sent(struct recording *recording, struct position after, int64_t now_ns);
/* Handles a taker's message; false if it does not answer a recording of this ring. */
bool delivery_answer(struct ring_view *view, const char *message, size_t size, int64_t now_ns);
/* Messages in flight may be lost: publishes again from the stored positions. */
void delivery_restart(struct ring_view *view);

#endif
