/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine that is suspended for five seconds, half a second after it was first asked for the time: the monotonic clock
 * does not know, the others do. */
#include <stdint.h>
#include <time.h>

#define AFTER_NS 500000000
#define SUSPENDED_S 5

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static int64_t ns_of(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static int64_t first_ns;
	struct timespec mono;

	__real_clock_gettime(CLOCK_MONOTONIC, &mono);
	if (!first_ns)
		first_ns = ns_of(&mono);
	if (__real_clock_gettime(clock, now))
		return -1;
	if ((clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME) && ns_of(&mono) - first_ns > AFTER_NS)
		now->tv_sec += SUSPENDED_S;
	return 0;
}
