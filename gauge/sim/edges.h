/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Edges on their way to the firmware's input, in order, each given at its cycle.  They wait here on one
 * timer of simavr's: it has 64 for everybody, and forgets what is registered beyond.
 */
#ifndef SIM_EDGES_H
#define SIM_EDGES_H

#include "timer16.h"

#define EDGES_ROOM 65536 /* a power of two */

struct edges {
	struct timer16 *timer;
	avr_cycle_count_t last;    /* of the edge put in last */
	avr_cycle_count_t free_at; /* when the firmware will have taken in what came too late */
	unsigned long in, put_back, put_off;
	unsigned first, count;
	struct {
		avr_cycle_count_t at;
		int level;
	} waiting[EDGES_ROOM];
};

/* The cycle for an edge that answers nothing: its time was taken when it was read, perhaps late and together with others,
 * which are dealt out so that the firmware gets to see each. */
avr_cycle_count_t edges_apart(struct edges *edges, avr_cycle_count_t at);

/* Puts an edge in for a cycle, or as near to it as can be when that has passed; -1 when there is no room. */
int edges_put(struct edges *edges, int level, avr_cycle_count_t at);

/* Forgets what waits, with the timer. */
void edges_clear(struct edges *edges);

#endif
