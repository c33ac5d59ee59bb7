/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeping with the EVL core; what a method's functions are to do is in ../linux/sleep.h. */
#ifndef SLEEP_H
#define SLEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "grid.h"

/* Until an instant of CLOCK_MONOTONIC; an errno, EINTR where something ended the sleep. */
int sleep_until(int64_t due_ns);
int sleep_for(int64_t length_ns);

/* One thread's periodic sleep. */
struct sleep {
	clockid_t clock;
	struct grid grid;  /* on that clock */
	int64_t begin_ns;  /* when the last act began; 0 before the first */
	int fd;
};

struct sleep_method {
	const char *name;
	bool relative, one_per_process, monotonic_only, whole_microseconds;
};

#define SLEEP_METHODS(X)                                                                                           \
	X(absolute, "evl_sleep_until", .relative = false)                                                          \
	X(timer, "evl_timer", .relative = false)

#define SLEEP_METHODS_HELP "evl_sleep_until (default), evl_timer"

#define SLEEP_SHORTCUTS(target)                                                                                    \
	{"nanosleep", 'n', OPTION_SET, target, .low = 0, .help = "as --method evl_sleep_until"}

#define SLEEP_DECLARE(NAME, ...)                                                                                   \
	int sleep_begin_##NAME(struct sleep *sleep);                                                               \
	int sleep_wait_##NAME(struct sleep *sleep);                                                                \
	void sleep_finish_##NAME(struct sleep *sleep);
SLEEP_METHODS(SLEEP_DECLARE)

/* Where the thread sleeps until a due time of its choice, and not at all when that has passed. */
static inline uint64_t sleep_missed_absolute(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_over(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

/* By the clock: the core tells an expiry twice that comes while it counts what was missed. */
static inline uint64_t sleep_missed_timer(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_missed(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

#endif
