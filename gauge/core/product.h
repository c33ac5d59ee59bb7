/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef GAUGE_PRODUCT_H
#define GAUGE_PRODUCT_H

#include <stdint.h>

/* A product in two words; as one of 64 bits, each shift or comparison of it would be a library call. */
union product {
	uint64_t whole;
	struct {
		uint32_t low, high; /* low first: little endian, checked in machine.h */
	};
};

/* Neither is inlined: there the compiler would forget how narrow the factors are, and multiply wider ones. */
static __attribute__((noinline, unused)) uint32_t product16(uint16_t a, uint16_t b)
{
	return (uint32_t)a * b;
}

static __attribute__((noinline, unused)) union product product32(uint32_t a, uint32_t b)
{
	if ((uint16_t)(a >> 16) == 0 && (uint16_t)(b >> 16) == 0)
		return (union product){ .low = product16((uint16_t)a, (uint16_t)b) };
	return (union product){ .whole = (uint64_t)a * b };
}

#endif
