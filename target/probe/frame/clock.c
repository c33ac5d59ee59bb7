/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clock.h"

/* Readings of two clocks lie this close together, or they are read again. */
#define CLOCK_PAIR_NS 5000

int64_t wall_offset_ns(void)
{
	int64_t before, wall, after = 0, best = INT64_MAX, offset = 0;

	for (int i = 0; i < 20 && best > CLOCK_PAIR_NS; i++) {
		before = mono_ns();
		wall = clock_ns(CLOCK_REALTIME);
		after = mono_ns();
		if (after - before < best) {
			best = after - before;
			offset = wall - before - best / 2;
		}
	}
	return offset;
}
