/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a clock, without a call of any kernel: the core's clocks are those of Linux. */
#ifndef NOW_H
#define NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
