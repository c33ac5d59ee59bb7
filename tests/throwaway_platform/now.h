/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef NOW_H
#define NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock == CLOCK_REALTIME)
		timespec_get(&now, TIME_UTC);
	else
		clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
