/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PERIODIC: the time between successive falling edges of the board, less the expected period.
 *
 * Where edges went by unseen (they came faster than they can be taken in), the periods between the
 * last edge before and the first after are counted as lost: how many were due is known, and so how many edges
 * were dropped.
 */
#ifndef GAUGE_PERIODIC_H
#define GAUGE_PERIODIC_H

#include <stdbool.h>
#include <stdint.h>

struct periodic {
	bool running;
	bool have_last;
	bool gap;
	uint32_t last;
	uint32_t period, timeout;
	uint32_t edges, gaps, dropped, lost, timeouts;
};

void periodic_begin(struct periodic *periodic);

/* A falling edge; true if it gives a sample. */
bool periodic_edge(struct periodic *periodic, uint32_t when, int32_t *deviation);

/* Edges have been dropped since the last one reported. */
void periodic_drop(struct periodic *periodic);

/* Called now and then with nothing queued: a board that has stopped begins anew. */
void periodic_poll(struct periodic *periodic, uint32_t now);

#endif
