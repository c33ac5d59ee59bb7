/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The source of values that are measured outside this program's workers: by a task of the kernel module, or at the
 * stations of the monitor.  At the end of each interval the frame fetches the new values from it.  A source is the first
 * member of a structure of its own, created in setup().
 */
#ifndef SOURCE_H
#define SOURCE_H

#include "run.h"

struct source {
	const char *probe, *implementation; /* as the head names them */
	int cpu;           /* where all acts are; -1: not on one CPU */
	int64_t poll_ns;   /* period of poll(); 0: never called */
	uint64_t capabilities;    /* required until the end, as a mask */

	void (*begin)(struct run *run); /* the first interval begins now; discards earlier counts */
	void (*poll)(struct run *run);  /* between the ends of intervals; may be NULL */
	void (*stop)(struct run *run);  /* counts are final after it; may be NULL */
	/* Fills the current epochs with the values since the last call; returns the instant of their end.  Fails the run if the
	 * values are not sound. */
	struct instant (*collect)(struct run *run);
	/* Counters of the source: of the last interval, or of the whole recording. */
	void (*interval_counters)(struct json *json, const struct run *run);
	void (*total_counters)(struct json *json, const struct run *run);
	void (*begin_totals)(struct run *run); /* in a ring: a new recording begins, reset the totals */
	/* Counters of the acting thread since its creation; may be NULL. */
	void (*thread)(const struct run *run, struct counters *counters);
	/* Requested and effective settings; may be NULL.  The second fails the run if they changed. */
	void (*settings_before)(struct run *run);
	void (*settings_after)(struct run *run);
};

/* Values counted elsewhere since the last flip: buckets first .. first + size - 1 of the series' own width, and rises from
 * edge 1 to `edges`. */
struct counted {
	struct fe_stats stats;
	uint64_t lost, missed, gaps;
	int32_t first;
	uint32_t size, edges;
	const uint32_t *buckets;
	const int32_t *rises;
};
/* Copies them into the current epoch, which is empty; false if the sum of the run's values would overflow. */
bool source_fill(struct series *series, const struct counted *from);

#endif
