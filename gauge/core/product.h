/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Products from 16-bit halves: the library's 64-bit multiplication is slow on a small machine, and takes a fifth of its
 * stack. */
#ifndef GAUGE_PRODUCT_H
#define GAUGE_PRODUCT_H

#include <stdint.h>

/* Not inlined: the compiler would lose the width of the factors, and multiply wider ones. */
static __attribute__((noinline, unused)) uint32_t product16(uint16_t a, uint16_t b)
{
	return (uint32_t)a * b;
}

/* The upper 32 bits of a 64-bit product. */
static inline uint32_t product_high(uint32_t a, uint32_t b)
{
	uint16_t a_high = (uint16_t)(a >> 16), b_high = (uint16_t)(b >> 16);
	uint32_t middle = product16(a_high, (uint16_t)b) + (product16((uint16_t)a, (uint16_t)b) >> 16);
	uint32_t other = product16((uint16_t)a, b_high) + (uint16_t)middle;

	return product16(a_high, b_high) + (middle >> 16) + (other >> 16);
}

#endif
