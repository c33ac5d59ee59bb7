/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
/* Holds up each thread right before and after every other time that it reads the wall clock; and each but the first
 * thread shortly, now and then, behind the other clock. */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HALT_NS 30500000
#define SHORT_NS 1000000

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static int read_wall(struct timespec *now)
{
	static const struct timespec halt = {.tv_nsec = HALT_NS};
	static _Thread_local bool halting;
	int result;

	halting = !halting;
	if (halting)
		nanosleep(&halt, NULL);
	result = __real_clock_gettime(CLOCK_REALTIME, now);
	if (halting)
		nanosleep(&halt, NULL);
	return result;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static const struct timespec halt = {.tv_nsec = SHORT_NS};
	static _Thread_local unsigned seed;
	pid_t thread = (pid_t)syscall(SYS_gettid);
	int result;

	if (clock == CLOCK_REALTIME)
		return read_wall(now);
	result = __real_clock_gettime(clock, now);
	if (!seed)
		seed = (unsigned)thread;
	if (thread != getpid() && rand_r(&seed) & 1)
		nanosleep(&halt, NULL);
	return result;
}
