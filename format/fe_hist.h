/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The histogram: log-linear, exact counts, nothing out of range.
 *
 * 2^k buckets per octave for magnitudes 0 .. 2^bits - 1.  Below 2^(k+1) each value has a bucket
 * of its own; above, a bucket is 2^shift wide, with shift = position of the top bit - k.
 * Negative values are kept in a second array of the same shape, indexed by their magnitude.
 *
 * Usable in user space, kernel, BPF and AVR: no includes in user space, no floating point, no
 * division, no allocation.  Define FE_HIST_SMALL before including where values fit 32 bits (AVR).
 * The arrays belong to the caller, so that each machine chooses its own counter width.
 */
#ifndef FE_HIST_H
#define FE_HIST_H

#ifdef __KERNEL__
#include <linux/bitops.h>
#endif

typedef __UINT32_TYPE__ fe_u32;
typedef __UINT64_TYPE__ fe_u64;
typedef __INT64_TYPE__ fe_s64;

#ifdef FE_HIST_SMALL
typedef fe_u32 fe_value;
#else
typedef fe_u64 fe_value;
#endif

/* How many buckets cover the magnitudes 0 .. 2^bits - 1. */
#define FE_HIST_BUCKETS(bits, k) (((fe_u32)(bits) - (k) + 1) << (k))

/* Position of the highest set bit; value must not be 0. */
static inline unsigned fe_top_bit(fe_value value)
{
#if defined(__KERNEL__)
	return fls64(value) - 1;
#elif defined(__AVR__)
	/* No instruction for it, and each shift of a wide value by less than a byte is a loop. */
	unsigned char top = 0, byte;
	unsigned short half;

#ifndef FE_HIST_SMALL
	if (value >> 32) { top += 32; value >>= 32; }
#endif
	if (value >> 16) { top += 16; value >>= 16; }
	half = (unsigned short)value;
	if (half >> 8) { top += 8; half >>= 8; }
	byte = (unsigned char)half;
	if (byte & 0xf0) { top += 4; byte >>= 4; }
	if (byte & 0x0c) { top += 2; byte >>= 2; }
	return top + (unsigned)(byte >> 1);
#elif defined(__bpf__)
	/* No instruction for it: halve the range, byte-sized steps first. */
	unsigned top = 0;

#ifndef FE_HIST_SMALL
	if (value >> 32) { top += 32; value >>= 32; }
#endif
	if (value >> 16) { top += 16; value >>= 16; }
	if (value >> 8) { top += 8; value >>= 8; }
	if (value >> 4) { top += 4; value >>= 4; }
	if (value >> 2) { top += 2; value >>= 2; }
	return top + (unsigned)(value >> 1);
#else
	return 63 - (unsigned)__builtin_clzll(value);
#endif
}

/* value >> shift. */
static inline fe_value fe_shift_right(fe_value value, unsigned shift)
{
#ifdef __AVR__
	/* A wide value moves by bytes at once, but by bits one at a time. */
	for (; shift >= 8; shift -= 8)
		value >>= 8;
#endif
	return value >> shift;
}

#ifdef __AVR__
/* A machine that shifts bit by bit finds the top bit on the way; two registers move in half the time of four. */
static inline unsigned short fe_hist_index16(unsigned short value, unsigned k)
{
	unsigned short index = 0;

	for (; value >= (unsigned short)32 << k; value >>= 4)
		index += (unsigned short)4 << k;
	for (; value >= (unsigned short)2 << k; value >>= 1)
		index += (unsigned short)1 << k;
	return index + value;
}
#endif

/* Bucket of a magnitude. */
static inline fe_u32 fe_hist_index(fe_value value, unsigned k)
{
	unsigned top, shift;

#ifdef __AVR__
	if (value >> 16 == 0)
		return fe_hist_index16((unsigned short)value, k);
#endif
	if (value < (fe_value)1 << k)
		return (fe_u32)value;
	top = fe_top_bit(value);
	shift = top - k;
	return (fe_u32)(shift << k) + (fe_u32)fe_shift_right(value, shift);
}

/* Smallest magnitude of a bucket. */
static inline fe_value fe_hist_lower(fe_u32 index, unsigned k)
{
	fe_u32 octave = index >> k;
	fe_u32 low_bits = index & (((fe_u32)1 << k) - 1);

	if (octave == 0)
		return index;
	return (fe_value)(low_bits + ((fe_u32)1 << k)) << (octave - 1);
}

/* How many magnitudes a bucket holds. */
static inline fe_value fe_hist_width(fe_u32 index, unsigned k)
{
	fe_u32 octave = index >> k;

	return octave < 2 ? 1 : (fe_value)1 << (octave - 1);
}

/* What is kept exactly beside the buckets.  min and max mean something only if count > 0. */
struct fe_stats {
	fe_u64 count;
	fe_s64 min, max;
	fe_s64 sum;
	fe_u64 sum_sq_lo, sum_sq_hi; /* 128 bits: 2^32 ns squared overflows 64 at the first sample */
};

static inline void fe_stats_add_u128(struct fe_stats *stats, fe_u64 lo, fe_u64 hi)
{
	stats->sum_sq_lo += lo;
	stats->sum_sq_hi += hi + (stats->sum_sq_lo < lo);
}

static inline void fe_stats_add_square(struct fe_stats *stats, fe_u64 magnitude)
{
	fe_u64 a = magnitude >> 32, b = magnitude & 0xffffffffu;

	fe_stats_add_u128(stats, b * b, 0);
	if (a) { /* (a 2^32 + b)^2 = a^2 2^64 + 2ab 2^32 + b^2 */
		fe_stats_add_u128(stats, (a * b) << 33, (a * b) >> 31);
		fe_stats_add_u128(stats, 0, a * a);
	}
}

static inline fe_u64 fe_magnitude(fe_s64 value)
{
	return value < 0 ? 0 - (fe_u64)value : (fe_u64)value;
}

static inline void fe_stats_add(struct fe_stats *stats, fe_s64 value)
{
	if (stats->count == 0 || value < stats->min)
		stats->min = value;
	if (stats->count == 0 || value > stats->max)
		stats->max = value;
	stats->count++;
	stats->sum += value;
	fe_stats_add_square(stats, fe_magnitude(value));
}

static inline void fe_stats_merge(struct fe_stats *into, const struct fe_stats *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0 || from->min < into->min)
		into->min = from->min;
	if (into->count == 0 || from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
	fe_stats_add_u128(into, from->sum_sq_lo, from->sum_sq_hi);
}

#endif
