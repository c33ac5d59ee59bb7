/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock of all time-outs: it cannot be set, and includes the time of a suspended board. */
#ifndef BOOT_CLOCK_H
#define BOOT_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static inline int64_t boot_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

#endif
