/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeping with the EVL core. */
#ifndef SLEEP_H
#define SLEEP_H

#include "sleeping.h"

/* Until an instant of CLOCK_MONOTONIC; an errno, EINTR where something ended the sleep. */
int sleep_until(int64_t due_ns);
int sleep_for(int64_t length_ns);

#define SLEEP_METHODS(X)                                                                                           \
	X(absolute, "evl_sleep_until", .any_due = true)                                                            \
	X(timer, "evl_timer", .relative = false)

#define SLEEP_METHODS_HELP "evl_sleep_until (default), evl_timer"

#define SLEEP_SHORTCUTS(target)                                                                                    \
	{"nanosleep", 'n', OPTION_SET, target, .low = 0, .help = "as --method evl_sleep_until"}

SLEEP_METHODS(SLEEP_DECLARE)

#define sleep_missed_absolute sleep_missed_by_grid
/* The core tells an expiry twice that comes while it counts what was missed. */
#define sleep_missed_timer sleep_missed_by_clock

#endif
