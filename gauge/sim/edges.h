/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The queue of edges for the firmware's input, each delivered at its cycle.  The queue needs one timer of simavr, which has
 * only 64 and drops further registrations.
 */
#ifndef SIM_EDGES_H
#define SIM_EDGES_H

#include "timer16.h"

#define EDGES_ROOM 65536 /* a power of two */

struct edges {
	struct timer16 *timer;
	avr_cycle_count_t last;    /* cycle of the last queued edge */
	avr_cycle_count_t free_at; /* when the firmware will have handled the late edges */
	unsigned long in, put_back, put_off;
	unsigned first, count;
	struct {
		avr_cycle_count_t at;
		int level;
	} waiting[EDGES_ROOM];
};

/* The cycle for an edge that is no answer.  Such edges may be read late and together, so they are spread for the firmware to
 * capture each. */
avr_cycle_count_t edges_apart(struct edges *edges, avr_cycle_count_t at);

/* Queues an edge for a cycle, or for the nearest possible one if it has passed; -1 if the queue is full. */
int edges_put(struct edges *edges, int level, avr_cycle_count_t at);

/* Discards all queued edges and the timer. */
void edges_clear(struct edges *edges);

#endif
