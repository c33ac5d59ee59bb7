/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "periodic.h"

void periodic_begin(struct periodic *periodic)
{
	periodic->running = true;
	periodic->have_last = periodic->gap = false;
	periodic->edges = periodic->gaps = periodic->dropped = periodic->lost = periodic->timeouts = 0;
}

static uint32_t __attribute__((noinline)) periods_in(const struct periodic *periodic, uint32_t ticks)
{
	uint32_t periods = (ticks + periodic->period / 2) / periodic->period;

	return periods ? periods : 1;
}

static void time_out(struct periodic *periodic)
{
	periodic->timeouts++;
	periodic->lost++;
	periodic->have_last = periodic->gap = false;
}

/* Counts the edges of a gap as dropped, except the last one, which was captured. */
static void skip(struct periodic *periodic, uint32_t periods)
{
	periodic->lost += periods;
	periodic->dropped += periods - 1;
}

bool periodic_edge(struct periodic *periodic, uint32_t when, int32_t *deviation)
{
	uint32_t ticks = when - periodic->last;
	bool sample;

	periodic->edges++;
	if (periodic->have_last && ticks > periodic->timeout)
		time_out(periodic);
	sample = periodic->have_last && !periodic->gap;
	if (periodic->gap && periodic->have_last)
		skip(periodic, periods_in(periodic, ticks));
	*deviation = (int32_t)(ticks - periodic->period);
	periodic->last = when;
	periodic->have_last = true;
	periodic->gap = false;
	return sample;
}

void periodic_drop(struct periodic *periodic)
{
	periodic->gaps++;
	periodic->gap = true;
}

void periodic_poll(struct periodic *periodic, uint32_t now)
{
	if (periodic->have_last && now - periodic->last > periodic->timeout)
		time_out(periodic);
}
