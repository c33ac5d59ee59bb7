/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Due times that leave their grid, so that nothing periodic stays in one phase with them.
 *
 * Each due time lies in the interval that ends at its grid point.  From act to act it moves against the grid by up to a
 * width in either direction, and turns back at the ends of the interval.  So each interval holds one due time, two due
 * times are no closer than an interval less the width, and all instants of an interval are equally frequent.  Periods
 * that an act missed lie as far before their grid points as that act.  The sequence follows from its seed alone.
 */
#ifndef DITHER_H
#define DITHER_H

#include <stdint.h>

#define DITHER_MOST_NS 1000000000 /* so that no product below overflows; at most half a period */

struct dither {
	int64_t width_ns; /* 0: due times stay where they are */
	int64_t ahead_ns; /* of the grid point; less than a period */
	uint64_t state;   /* its seed at first */
};

/* Knuth's generator for MMIX, whose upper half is random enough; all of -width to +width is equally frequent. */
static inline int64_t dither_step_ns(struct dither *dither)
{
	dither->state = dither->state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(((dither->state >> 32) * (uint64_t)(2 * dither->width_ns + 1)) >> 32) - dither->width_ns;
}

/* How much later than a period after the one before the next due time is; negative where earlier. */
static inline int64_t dither_move_ns(struct dither *dither, int64_t period_ns)
{
	int64_t before_ns = dither->ahead_ns, ahead_ns = before_ns + dither_step_ns(dither);

	if (ahead_ns < 0)
		ahead_ns = -1 - ahead_ns;
	if (ahead_ns >= period_ns)
		ahead_ns = 2 * period_ns - 1 - ahead_ns;
	dither->ahead_ns = ahead_ns;
	return before_ns - ahead_ns;
}

#endif
