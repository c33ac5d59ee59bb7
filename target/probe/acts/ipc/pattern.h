/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data sent through pipes and shared memory: random words, of which every block is a different piece, so that a torn,
 * stale or reordered block is detected.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdint.h>
#include <string.h>

#include "frame.h"

#define PATTERN_SHIFTS 512 /* after so many blocks a piece comes again */
#define PATTERN_STEP 8

/* Allocates the pattern for blocks of up to `block` bytes. */
static inline unsigned char *pattern_new(struct run *run, size_t block)
{
	size_t words = (block + PATTERN_SHIFTS * PATTERN_STEP) / sizeof(uint64_t) + 1;
	uint64_t *pattern = run_allocate(run, words * sizeof(uint64_t));
	uint64_t x = 1;

	for (size_t i = 0; i < words; i++) { /* xorshift: no word comes twice */
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		pattern[i] = x;
	}
	return (unsigned char *)pattern;
}

static inline const unsigned char *pattern_block(const unsigned char *pattern, uint64_t number)
{
	return pattern + number % PATTERN_SHIFTS * PATTERN_STEP;
}

/* A quick check for every block: its first eight bytes and its last two. */
static inline bool pattern_ends_match(const unsigned char *block, const unsigned char *right, size_t size)
{
	return !memcmp(block, right, size < 8 ? size : 8) && (size < 2 || !memcmp(block + size - 2, right + size - 2, 2));
}

#endif
