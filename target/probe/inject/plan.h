/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plan of an injector: delays of several sizes in turn, at due times of the delayed tasks.
 *
 * An injector wakes slightly before such a due time, and records the actual delay.  If it wakes too late, the injection
 * counts as missed and is repeated, up to twice as many attempts as requested injections.
 */
#ifndef PLAN_H
#define PLAN_H

#include "frame.h"

#define PLAN_SIZES 16

/* What the command line says. */
struct plan_options {
	const char *sizes;
	int64_t each, begin_mono_ns, lead_ns;
};

#define PLAN_DEFAULTS {.sizes = "1ms", .each = 10, .lead_ns = 300 * NS_PER_US}
#define PLAN_OPTIONS(CHOSEN)                                                                                       \
	{"sizes", 0, OPTION_TEXT, &(CHOSEN).sizes, .help = "delays to inject in turn, as 200us,1ms (1ms)"},        \
	{"each", 0, OPTION_INTEGER, &(CHOSEN).each, .low = 1, .high = 1000000, .help = "number of injections of each size in time (10)"}, \
	{"begin", 0, OPTION_INTEGER, &(CHOSEN).begin_mono_ns, .low = 0, .high = INT64_MAX / 2,                     \
	 .help = "a due time of those to be delayed, CLOCK_MONOTONIC ns; --interval is a multiple of their period"}, \
	{"lead", 0, OPTION_DURATION, &(CHOSEN).lead_ns, .low = 0, .high = 100 * NS_PER_MS, .plain = NS_PER_US,     \
	 .plain_name = "us", .help = "begin so long before a due time (300us)"}

struct plan {
	int64_t due_mono_ns, interval_ns, lead_ns;
	int sizes, next;
	bool over;
	int64_t wanted[PLAN_SIZES], tries[PLAN_SIZES]; /* injections that are to take place still, and that may be tried */
	int64_t size_ns[PLAN_SIZES];
	char size_text[PLAN_SIZES][16];
	struct series *series[PLAN_SIZES]; /* the injector's own, one for each size */
};

/* Reads the options and records them; bad input where they would leave the CPU too little for others, or a size is
 * longer than the injector may take. */
void plan_make(struct plan *plan, struct run *run, const struct plan_options *chosen, int64_t longest_ns);

static inline int64_t plan_size_ns(const struct plan *plan)
{
	return plan->size_ns[plan->next];
}

static inline struct series *plan_series(const struct plan *plan)
{
	return plan->series[plan->next];
}

/* To the next due time, and the next size that is not done yet. */
void plan_advance(struct plan *plan, bool took_place);

#endif
