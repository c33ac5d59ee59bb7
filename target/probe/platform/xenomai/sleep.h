/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeping with the Cobalt core. */
#ifndef SLEEP_H
#define SLEEP_H

#include "sleeping.h"

/* Until an instant of CLOCK_MONOTONIC; an errno, EINTR where something ended the sleep. */
int sleep_until(int64_t due_ns);
int sleep_for(int64_t length_ns);

#define SLEEP_METHODS(X)                                                                                           \
	X(absolute, "clock_nanosleep-abs", .any_due = true)                                                        \
	X(relative, "clock_nanosleep-rel", .relative = true)                                                       \
	X(timerfd, "timerfd", .relative = false)

#define SLEEP_METHODS_HELP "clock_nanosleep-abs (default), clock_nanosleep-rel, timerfd"

#define SLEEP_SHORTCUTS(target)                                                                                    \
	{"relative", 'r', OPTION_SET, target, .low = 1, .help = "as --method clock_nanosleep-rel"},                \
	{"nanosleep", 'n', OPTION_SET, target, .low = 0, .help = "as --method clock_nanosleep-abs"}

SLEEP_METHODS(SLEEP_DECLARE)

#define sleep_missed_absolute sleep_missed_by_grid
#define sleep_missed_relative sleep_missed_by_clock
#define sleep_missed_timerfd sleep_missed_by_kernel

#endif
