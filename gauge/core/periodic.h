/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PERIODIC: the time between successive falling edges of the board, less the expected period.
 *
 * In a gap, where edges came faster than they could be captured, the periods between the last edge before and the first
 * edge after count as lost.  Their number follows from the expected period, and so does the number of dropped edges.
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

/* Handles a falling edge; true if it yields a sample. */
bool periodic_edge(struct periodic *periodic, uint32_t when, int32_t *deviation);

/* Notes that edges were dropped since the last periodic_edge(). */
void periodic_drop(struct periodic *periodic);

/* Checks the time-out; called from time to time while the queue is empty. */
void periodic_poll(struct periodic *periodic, uint32_t now);

#endif
