/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source.h"

#include <string.h>

bool source_fill(struct series *series, const struct counted *from)
{
	struct epoch *epoch = &series->epochs[atomic_load(&series->current)];
	uint64_t magnitudes;

	series_sync_recording(series, epoch);
	magnitudes = series->magnitudes + fe_magnitude(from->stats.sum);
	if (magnitudes > SERIES_SUM_MOST)
		return false;
	series->magnitudes = magnitudes;
	memcpy(&epoch->buckets[from->first], from->buckets, from->size * sizeof(*from->buckets));
	epoch->stats = from->stats;
	epoch->lost = from->lost;
	epoch->missed = from->missed;
	epoch->gaps = from->gaps;
	for (uint32_t edge = 1; edge <= from->edges; edge++)
		epoch->rises[edge] = from->rises[edge];
	return true;
}
