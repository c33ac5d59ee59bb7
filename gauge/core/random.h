/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random waits: a linear congruential generator of full period, mapped uniformly to a span.
 * The mapping uses the upper bits of the state, which have the longest periods.
 */
#ifndef GAUGE_RANDOM_H
#define GAUGE_RANDOM_H

#include <stdint.h>

#include "product.h"

static inline uint32_t random_next(uint32_t state)
{
	return state * 1664525u + 1013904223u;
}

/*
 * A value from 0 to span, both included; span is below 2^32 - 1.  Each value results from
 * 2^32 / (span + 1) states, give or take one.
 */
static inline uint32_t random_within(uint32_t state, uint32_t span)
{
	return product_high(state, span + 1);
}

#endif
