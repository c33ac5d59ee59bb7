/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which recording is published next, from where on, and when again: by takers' answers alone.
 *
 * Nothing of this survives the process.  After a start the first chunk of each recording is published, and the answer
 * says how far it is stored.
 */
#ifndef DELIVERY_H
#define DELIVERY_H

#include "ring_view.h"

/* The recording whose next chunk is to be published now; NULL: none. */
struct recording *delivery_next(struct ring_view *view, int64_t now_ns);
/* It was published up to a place. */
void delivery_sent(struct recording *recording, struct place after, int64_t now_ns);
/* Takes the message of a taker; false where it is no answer to a recording of this ring. */
bool delivery_answer(struct ring_view *view, const char *message, size_t size, int64_t now_ns);
/* What was under way may be lost. */
void delivery_restart(struct ring_view *view);

#endif
