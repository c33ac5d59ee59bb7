/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
/*
 * Ends each absolute sleep at a known time after its due time, on a clock of known errors: it advances in steps of STEP_NS,
 * and a reading takes READ_NS and shows some instant within them.  The file named by KNOWN_DELAYS gets due time and
 * delay of each sleep.  Whatever the machine does meanwhile, the thread's clock does not show it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEP_NS 250
#define READ_NS 400
#define MOST_DELAY_NS 60000
#define NS_PER_S 1000000000LL

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_clock_nanosleep(clockid_t clock, int flags, const struct timespec *due, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *due, struct timespec *left);

static _Thread_local int64_t own_ns; /* of a thread that has slept */
static _Thread_local unsigned seed = 1;

static int64_t ns_of(const struct timespec *time)
{
	return time->tv_sec * NS_PER_S + time->tv_nsec;
}

static int64_t real_ns(void)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	return ns_of(&now);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t begin_ns = real_ns(), shown_ns;

	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, now);
	while (real_ns() < begin_ns + READ_NS)
		;
	shown_ns = (own_ns ? own_ns : begin_ns) + rand_r(&seed) % READ_NS;
	shown_ns -= shown_ns % STEP_NS;
	if (own_ns)
		own_ns += READ_NS;
	*now = (struct timespec){.tv_sec = shown_ns / NS_PER_S, .tv_nsec = shown_ns % NS_PER_S};
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *due, struct timespec *left)
{
	static FILE *known;
	int64_t delay_ns = rand_r(&seed) % MOST_DELAY_NS;
	int error = __real_clock_nanosleep(clock, flags, due, left);

	if (error || clock != CLOCK_MONOTONIC || flags != TIMER_ABSTIME)
		return error;
	if (!known)
		known = fopen(getenv("KNOWN_DELAYS"), "w");
	fprintf(known, "%lld %lld\n", (long long)ns_of(due), (long long)delay_ns);
	fflush(known);
	own_ns = ns_of(due) + delay_ns;
	return 0;
}
