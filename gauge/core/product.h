/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Products of the halves of wide numbers: a library's multiplication to 64 bits is slow on a small machine, and takes a
 * fifth of its stack. */
#ifndef GAUGE_PRODUCT_H
#define GAUGE_PRODUCT_H

#include <stdint.h>

/* Not inlined: there the compiler would forget how narrow the factors are, and multiply wider ones. */
static __attribute__((noinline, unused)) uint32_t product16(uint16_t a, uint16_t b)
{
	return (uint32_t)a * b;
}

/* The upper half of a product of 64 bits. */
static inline uint32_t product_high(uint32_t a, uint32_t b)
{
	uint16_t a_high = (uint16_t)(a >> 16), b_high = (uint16_t)(b >> 16);
	uint32_t middle = product16(a_high, (uint16_t)b) + (product16((uint16_t)a, (uint16_t)b) >> 16);
	uint32_t other = product16((uint16_t)a, b_high) + (uint16_t)middle;

	return product16(a_high, b_high) + (middle >> 16) + (other >> 16);
}

#endif
