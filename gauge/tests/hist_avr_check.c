/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The AVR code of fe_hist.h, compiled for the host: each value up to 2^26 is in its bucket, in order. */
#include <stdint.h>
#include <stdio.h>

#define __AVR__
#define FE_HIST_SMALL
#include "fe_hist.h"

static int check(unsigned k, fe_value limit)
{
	fe_u32 last = 0;

	for (fe_value value = 0; value < limit; value++) {
		fe_u32 index = fe_hist_index(value, k);
		fe_value lower = fe_hist_lower(index, k);

		if (value < lower || value - lower >= fe_hist_width(index, k) || index - last > 1) {
			fprintf(stderr, "k = %u: %u is in bucket %u, which begins at %u\n", k, value, index, lower);
			return 1;
		}
		last = index;
	}
	return last + 1 != FE_HIST_BUCKETS(26, k);
}

int main(void)
{
	fe_u32 top = fe_hist_index(UINT32_MAX, 4);

	return check(4, 1u << 26) || check(6, 1u << 26) || top + 1 != FE_HIST_BUCKETS(32, 4);
}
