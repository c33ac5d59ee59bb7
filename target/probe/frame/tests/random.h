/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The same numbers in every run of a test: Marsaglia's xorshift of 64 bits. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

#define RANDOM_SEED 88172645463325252u

static uint64_t random_state = RANDOM_SEED;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

#endif
