/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the values of a run come from that no worker of this program measures: from a task of the kernel module, or
 * from the stations of the monitor.  At each end of an interval the frame asks the source for what came since.  A source is
 * the first member of a structure of its own, made in setup().
 */
#ifndef SOURCE_H
#define SOURCE_H

#include "run.h"

struct source {
	const char *probe, *implementation; /* as the head names them */
	int cpu;           /* where all acts are; -1: not on one CPU */
	int64_t look_ns;   /* how often look() is called; 0: never */
	uint64_t keeps;    /* the capabilities that it needs until the end, as a mask */

	void (*begin)(struct run *run); /* the first interval begins now; what was counted so far is not of this run */
	void (*look)(struct run *run);  /* between the ends of intervals; may be NULL */
	void (*stop)(struct run *run);  /* what is counted after that is final; may be NULL */
	/* The current epochs then hold what came since; returns up to when.  Fails the run where nothing sound comes. */
	struct instant (*part)(struct run *run);
	/* Counters of its own: of the interval that ended last, or of the whole recording. */
	void (*interval_counters)(struct json *json, const struct run *run);
	void (*total_counters)(struct json *json, const struct run *run);
	void (*begin_totals)(struct run *run); /* of a ring: what was counted so far is of the recordings before */
	/* What befell the thread that acts, since it was made; may be NULL. */
	void (*thread)(const struct run *run, struct counters *counters);
	/* What was requested and is in effect, as settings of the run; may be NULL.  The second fails the run where they changed. */
	void (*settings_before)(struct run *run);
	void (*settings_after)(struct run *run);
};

/* What was counted elsewhere since the last flip, in buckets first .. first + size - 1 of the series' own width and in rises
 * from edge 1 to `edges`: into the current epoch, which is empty.  False where all values of the run together come to too much. */
struct counted {
	struct fe_stats stats;
	uint64_t lost, missed, gaps;
	int32_t first;
	uint32_t size, edges;
	const uint32_t *buckets;
	const int32_t *rises;
};
bool source_fill(struct series *series, const struct counted *from);

#endif
