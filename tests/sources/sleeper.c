/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A periodic task that is nobody's probe: sleeper NAME POLICY PRIORITY CPU PERIOD_NS ACTS.  It waits for a line on its input,
 * sleeps from due time to due time, and prints how often it really slept and how often others took the CPU from it (by the
 * kernel's own count of its switches), then each due time and when it was back from its sleep, CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct rusage used(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage;
}

static void become(char **words)
{
	struct sched_param priority = {.sched_priority = atoi(words[3])};
	cpu_set_t cpus;

	prctl(PR_SET_NAME, words[1]);
	CPU_ZERO(&cpus);
	CPU_SET(atoi(words[4]), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || sched_setscheduler(0, atoi(words[2]), &priority) ||
	    mlockall(MCL_CURRENT | MCL_FUTURE))
		exit(3);
}

int main(int argc, char **argv)
{
	long long period_ns = argc == 7 ? atoll(argv[5]) : 0, acts = argc == 7 ? atoll(argv[6]) : 0;
	long long (*times)[2] = calloc((size_t)acts + 1, sizeof(*times)), due_ns;
	struct rusage before, after;

	if (!period_ns || !times)
		return 2;
	become(argv);
	puts("ready");
	fflush(stdout);
	if (getchar() < 0)
		return 4;
	before = used();
	due_ns = now_ns();
	for (long long i = 0; i < acts; i++) {
		struct timespec due;

		due_ns += period_ns;
		due = (struct timespec){due_ns / 1000000000, due_ns % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		times[i][0] = due_ns;
		times[i][1] = now_ns();
	}
	after = used();
	printf("%ld %ld\n", after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw);
	for (long long i = 0; i < acts; i++)
		printf("%lld %lld\n", times[i][0], times[i][1]);
	return 0;
}
