/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time as 64-bit nanoseconds. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

/* Without a system call: the clocks of every real-time core are those of Linux. */
static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline int64_t mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* The wall clock less the monotonic one.  Both are read so often that nothing came between the two readings. */
int64_t wall_offset_ns(void);
/* The same for the clock that includes the time of suspension. */
int64_t boot_offset_ns(void);

static inline struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

#endif
