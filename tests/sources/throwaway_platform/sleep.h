/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SLEEP_H
#define SLEEP_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

#include "clock.h"
#include "grid.h"

static inline int sleep_for(int64_t length_ns)
{
	struct timespec length = timespec_of(length_ns);

	return pselect(0, NULL, NULL, NULL, &length, NULL) < 0 ? errno : 0;
}

static inline int sleep_until(int64_t due_ns)
{
	int64_t left_ns = due_ns - mono_ns();

	return left_ns > 0 ? sleep_for(left_ns) : 0;
}

struct sleep {
	clockid_t clock;
	struct grid grid;
	int64_t begin_ns;
	int fd;
};

struct sleep_method {
	const char *name;
	bool relative, any_due, one_per_process, monotonic_only, whole_microseconds;
};

#define SLEEP_METHODS(X)                                                                                           \
	X(select, "pselect", .any_due = true, .monotonic_only = true)                                              \
	X(busy, "busy", .any_due = true, .monotonic_only = true)
#define SLEEP_METHODS_HELP "pselect (default) or busy"
#define SLEEP_SHORTCUTS(target) {"busy", 0, OPTION_SET, target, .low = 1, .help = "as --method busy"}

static inline int sleep_begin_select(struct sleep *sleep)
{
	(void)sleep;
	return 0;
}

static inline int sleep_wait_select(struct sleep *sleep)
{
	return sleep_until(sleep->grid.due_ns);
}

static inline uint64_t sleep_missed_select(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_over(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

static inline void sleep_finish_select(struct sleep *sleep)
{
	(void)sleep;
}

static inline int sleep_wait_busy(struct sleep *sleep)
{
	while (mono_ns() < sleep->grid.due_ns)
		;
	return 0;
}

#define sleep_begin_busy sleep_begin_select
#define sleep_missed_busy sleep_missed_select
#define sleep_finish_busy sleep_finish_select

#endif
