/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "edges.h"

#include <sim_cycle_timers.h>

#include "hardware.h"

static avr_cycle_count_t deliver(avr_t *avr, avr_cycle_count_t when, void *context)
{
	struct edges *edges = context;

	(void)avr;
	timer16_input(edges->timer, edges->waiting[edges->first].level, when);
	edges->first = (edges->first + 1) % EDGES_ROOM;
	edges->count--;
	return edges->count ? edges->waiting[edges->first].at : 0;
}

static int enqueue(struct edges *edges, int level, avr_cycle_count_t at)
{
	avr_t *avr = edges->timer->avr;
	unsigned place = (edges->first + edges->count) % EDGES_ROOM;

	if (edges->count == EDGES_ROOM)
		return -1;
	edges->waiting[place].at = at;
	edges->waiting[place].level = level;
	if (edges->count++ == 0)
		avr_cycle_timer_register(avr, at - avr->cycle, deliver, edges);
	return 0;
}

static void deliver_late(struct edges *edges, int level, avr_cycle_count_t at)
{
	avr_cycle_count_t now = edges->timer->avr->cycle, zero = edges->timer->zero;

	edges->put_back++;
	edges->free_at = now + SERVICE_CYCLES;
	if ((at - zero) >> 16 != (now - zero) >> 16) {
		edges->put_off++;
		at = now;
	}
	timer16_input(edges->timer, level, at);
}

avr_cycle_count_t edges_apart(struct edges *edges, avr_cycle_count_t at)
{
	if (at >= edges->last + APART_CYCLES)
		return at;
	edges->put_off++;
	return edges->last + APART_CYCLES;
}

int edges_put(struct edges *edges, int level, avr_cycle_count_t at)
{
	if (at <= edges->last)
		at = edges->last + 1;
	if (at < edges->free_at) {
		edges->put_off++;
		at = edges->free_at;
		edges->free_at += SERVICE_CYCLES;
	}
	edges->last = at;
	edges->in++;
	if (edges->count || at > edges->timer->avr->cycle)
		return enqueue(edges, level, at);
	deliver_late(edges, level, at);
	return 0;
}

void edges_clear(struct edges *edges)
{
	avr_cycle_timer_cancel(edges->timer->avr, deliver, edges);
	edges->count = 0;
	edges->last = edges->free_at = 0;
}
