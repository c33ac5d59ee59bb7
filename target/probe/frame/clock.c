/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clock.h"

/* Readings of two clocks lie this close together, or they are read again. */
#define CLOCK_PAIR_NS 5000

static int64_t offset_ns(clockid_t clock)
{
	int64_t before, other, after = 0, best = INT64_MAX, offset = 0;

	for (int i = 0; i < 20 && best > CLOCK_PAIR_NS; i++) {
		before = mono_ns();
		other = clock_ns(clock);
		after = mono_ns();
		if (after - before < best) {
			best = after - before;
			offset = other - before - best / 2;
		}
	}
	return offset;
}

int64_t wall_offset_ns(void)
{
	return offset_ns(CLOCK_REALTIME);
}

int64_t boot_offset_ns(void)
{
	return offset_ns(CLOCK_BOOTTIME);
}
