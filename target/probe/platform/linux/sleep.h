/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeping: the plain way for all acts whose sleep is not what is measured, and every method that timer measures. */
#ifndef SLEEP_H
#define SLEEP_H

#include "sleeping.h"

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

/* Those that timer measures; sleeping.h says what each word means. */
#define SLEEP_METHODS(X)                                                                                           \
	X(absolute, "clock_nanosleep-abs", .any_due = true)                                                        \
	X(relative, "clock_nanosleep-rel", .relative = true)                                                       \
	X(nanosleep, "nanosleep", .relative = true, .monotonic_only = true)                                        \
	X(posix_timer, "posix-timer", .relative = false)                                                           \
	X(setitimer, "setitimer", .one_per_process = true, .monotonic_only = true, .whole_microseconds = true)     \
	X(timerfd, "timerfd", .relative = false)                                                                   \
	X(futex, "futex", .any_due = true)                                                                         \
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

SLEEP_METHODS(SLEEP_DECLARE)

#define sleep_missed_absolute sleep_missed_by_grid
#define sleep_missed_relative sleep_missed_by_clock
#define sleep_missed_nanosleep sleep_missed_by_clock
#define sleep_missed_posix_timer sleep_missed_by_kernel
#define sleep_missed_setitimer sleep_missed_by_clock
#define sleep_missed_timerfd sleep_missed_by_kernel
#define sleep_missed_futex sleep_missed_by_grid
#define sleep_missed_ppoll sleep_missed_by_clock

#endif
