/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holds up each thread right before and after every other time that it reads the wall clock. */
#include <stdbool.h>
#include <time.h>

#define HALT_NS 30500000

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static const struct timespec halt = {.tv_nsec = HALT_NS};
	static _Thread_local bool halting;
	int result;

	if (clock != CLOCK_REALTIME)
		return __real_clock_gettime(clock, now);
	halting = !halting;
	if (halting)
		nanosleep(&halt, NULL);
	result = __real_clock_gettime(clock, now);
	if (halting)
		nanosleep(&halt, NULL);
	return result;
}
