/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeping: the plain way for all acts whose sleep is not what is measured, and every method that timer measures. */
#ifndef SLEEP_H
#define SLEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "clock.h"
#include "grid.h"

/* Until an instant of CLOCK_MONOTONIC; an errno, EINTR where a signal ended the sleep. */
static inline int sleep_until(int64_t due_ns)
{
	struct timespec due = timespec_of(due_ns);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

static inline int sleep_for(int64_t length_ns)
{
	struct timespec length = timespec_of(length_ns);

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
}

/* One thread's periodic sleep. */
struct sleep {
	clockid_t clock;
	struct grid grid;  /* on that clock */
	int64_t begin_ns;  /* when the last act began; 0 before the first */
	uint64_t overruns; /* told by the kernel at the last wake-up, where it tells */
	timer_t timer;
	int fd;
	uint32_t word; /* a futex nobody wakes */
};

struct sleep_method {
	const char *name;
	bool relative;         /* sleeps a length of time: due = before the sleep + interval */
	bool one_per_process;  /* the kernel has only one of these for all threads */
	bool monotonic_only;
	bool whole_microseconds;
};

/*
 * The methods, by a word that is part of their functions' names, with their names and what is true of each; the
 * first is the default.  For each there are, called directly where it is timed:
 *
 *	int sleep_begin_NAME(struct sleep *);    the grid begins with the first due time; an errno
 *	int sleep_wait_NAME(struct sleep *);     0: a due time has come; EINTR: none has, wait again; else an errno
 *	uint64_t sleep_missed_NAME(const struct sleep *, int64_t begin_ns);
 *	void sleep_finish_NAME(struct sleep *);
 */
#define SLEEP_METHODS(X)                                                                                           \
	X(absolute, "clock_nanosleep-abs", .relative = false)                                                      \
	X(relative, "clock_nanosleep-rel", .relative = true)                                                       \
	X(nanosleep, "nanosleep", .relative = true, .monotonic_only = true)                                        \
	X(posix_timer, "posix-timer", .relative = false)                                                           \
	X(setitimer, "setitimer", .one_per_process = true, .monotonic_only = true, .whole_microseconds = true)     \
	X(timerfd, "timerfd", .relative = false)                                                                   \
	X(futex, "futex", .relative = false)                                                                       \
	X(ppoll, "ppoll", .relative = true, .monotonic_only = true)

#define SLEEP_METHODS_HELP                                                                                         \
	"clock_nanosleep-abs (default), clock_nanosleep-rel, nanosleep,\n"                                         \
	"                             posix-timer, setitimer, timerfd, futex, ppoll"

/* Letters that this field's fingers know, each for a method. */
#define SLEEP_SHORTCUTS(target)                                                                                    \
	{"relative", 'r', OPTION_SET, target, .low = 1, .help = "as --method clock_nanosleep-rel"},                \
	{"system", 's', OPTION_SET, target, .low = 2, .help = "as --method nanosleep"},                            \
	{"posix-timers", 'x', OPTION_SET, target, .low = 3, .help = "as --method posix-timer"},                    \
	{"nanosleep", 'n', OPTION_SET, target, .low = 0, .help = "as --method clock_nanosleep-abs"}

#define SLEEP_DECLARE(NAME, ...)                                                                                   \
	int sleep_begin_##NAME(struct sleep *sleep);                                                               \
	int sleep_wait_##NAME(struct sleep *sleep);                                                                \
	void sleep_finish_##NAME(struct sleep *sleep);
SLEEP_METHODS(SLEEP_DECLARE)

/* Where nobody but the clock tells what was missed. */
static inline uint64_t sleep_missed_by_clock(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_missed(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

/* Where the thread sleeps until a due time of its choice, and not at all when that has passed. */
static inline uint64_t sleep_missed_by_grid(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_over(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

/* Where the kernel keeps the grid, its count is the one that stays in step with its expiries. */
static inline uint64_t sleep_missed_by_kernel(const struct sleep *sleep, int64_t begin_ns)
{
	(void)begin_ns;
	return sleep->overruns;
}

#define sleep_missed_absolute sleep_missed_by_grid
#define sleep_missed_relative sleep_missed_by_clock
#define sleep_missed_nanosleep sleep_missed_by_clock
#define sleep_missed_posix_timer sleep_missed_by_kernel
#define sleep_missed_setitimer sleep_missed_by_clock
#define sleep_missed_timerfd sleep_missed_by_kernel
#define sleep_missed_futex sleep_missed_by_grid
#define sleep_missed_ppoll sleep_missed_by_clock

#endif
