/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The floor `make bench` compares with: sleep, read the clock, keep the maximum, and nothing else.  Idle
 * states are held as all who measure hold them, for leaving a deep one costs the sleeper time, too.
 *
 *	bench-bare CPU INTERVAL_US SAMPLES
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

static void hold_idle_states(void)
{
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	int us = 0;

	if (fd >= 0 && write(fd, &us, sizeof(us)) != sizeof(us))
		fputs("bench-bare: idle states cannot be held\n", stderr);
}

static int become_real_time(int cpu)
{
	struct sched_param parameters = {.sched_priority = 98};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) || mlockall(MCL_CURRENT) ||
	       sched_setscheduler(0, SCHED_FIFO, &parameters);
}

int main(int argc, char **argv)
{
	int64_t interval_ns, due_ns, latest_ns = 0;

	if (argc != 4 || become_real_time(atoi(argv[1]))) {
		fputs("usage, as root: bench-bare CPU INTERVAL_US SAMPLES\n", stderr);
		return 2;
	}
	hold_idle_states();
	interval_ns = atoll(argv[2]) * NS_PER_US;
	due_ns = mono_ns() + interval_ns;
	for (long left = atol(argv[3]); left > 0; left--) {
		struct timespec due = timespec_of(due_ns);
		int64_t late_ns;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		late_ns = mono_ns() - due_ns;
		latest_ns = late_ns > latest_ns ? late_ns : latest_ns;
		due_ns += interval_ns;
	}
	printf("%lld\n", (long long)latest_ns);
	return 0;
}
