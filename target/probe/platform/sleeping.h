/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common to the sleep.h of several platforms: the periodic sleep of a thread, and its methods. */
#ifndef SLEEPING_H
#define SLEEPING_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "clock.h"
#include "grid.h"

/* One thread's periodic sleep. */
struct sleep {
	clockid_t clock;
	struct grid grid;  /* on that clock */
	int64_t begin_ns;  /* when the last act began; a period before the first due time where there was none */
	uint64_t overruns; /* reported by kernel or core at the last wake-up, if it does */
	timer_t timer;
	int fd;
	uint32_t word; /* a futex nobody wakes */
};

struct sleep_method {
	const char *name;
	bool relative;         /* sleeps a length of time: due = before the sleep + interval */
	bool any_due;          /* the thread names each due time; elsewhere the kernel or core keeps a grid */
	bool one_per_process;  /* the kernel has only one of these for all threads */
	bool monotonic_only;
	bool whole_microseconds;
};

/*
 * A platform's SLEEP_METHODS(X) lists its methods, by a word that is part of their functions' names, with their names and
 * what is true of each; the first is the default.  For each there are, called directly where it is timed:
 *
 *	int sleep_begin_NAME(struct sleep *);    the grid begins with the first due time; an errno
 *	int sleep_wait_NAME(struct sleep *);     0: a due time has come; EINTR: none has, wait again; else an errno
 *	uint64_t sleep_missed_NAME(const struct sleep *, int64_t begin_ns);    one of those below
 *	void sleep_finish_NAME(struct sleep *);
 */
#define SLEEP_DECLARE(NAME, ...)                                                                                   \
	int sleep_begin_##NAME(struct sleep *sleep);                                                               \
	int sleep_wait_##NAME(struct sleep *sleep);                                                                \
	void sleep_finish_##NAME(struct sleep *sleep);

/* For methods that need nothing but their call. */
#define SLEEP_WITHOUT_SETUP(NAME)                                                                            \
	int sleep_begin_##NAME(struct sleep *sleep)                                                                \
	{                                                                                                          \
		(void)sleep;                                                                                       \
		return 0;                                                                                          \
	}                                                                                                          \
	void sleep_finish_##NAME(struct sleep *sleep)                                                              \
	{                                                                                                          \
		(void)sleep;                                                                                       \
	}

/* For methods whose missed periods only the clock shows. */
static inline uint64_t sleep_missed_by_clock(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_missed(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

/* Where the thread sleeps until a due time of its choice, and not at all when that has passed. */
static inline uint64_t sleep_missed_by_grid(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_over(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

/* Where the kernel or core keeps the grid, its count is the one that stays in step with its expiries. */
static inline uint64_t sleep_missed_by_kernel(const struct sleep *sleep, int64_t begin_ns)
{
	(void)begin_ns;
	return sleep->overruns;
}

/* True if the due time has passed: a sleep until it would cost the time of a sleep, and perhaps further periods. */
static inline bool sleep_due_already(const struct sleep *sleep)
{
	return __builtin_expect(sleep->grid.due_ns <= sleep->begin_ns, 0);
}

/* Something else ended the waiting.  Where the clock alone says what is due, this is an act if the due time has passed. */
static inline int sleep_interrupted(const struct sleep *sleep, int error)
{
	return error == EINTR && clock_ns(sleep->clock) >= sleep->grid.due_ns ? 0 : error;
}

/*
 * A relative sleep is due an interval after it began.  Where the thread was kept from beginning it for a whole interval after
 * its last act, the next act is late already: it is due an interval after the last one, and there is no sleep.
 */
static inline bool sleep_late_already(struct sleep *sleep)
{
	int64_t now_ns = clock_ns(sleep->clock);
	bool late = __builtin_expect(now_ns - sleep->begin_ns >= sleep->grid.period_ns, 0);

	sleep->grid.due_ns = (late ? sleep->begin_ns : now_ns) + sleep->grid.period_ns;
	return late;
}

#endif
