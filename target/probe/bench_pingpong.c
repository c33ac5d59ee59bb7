/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two threads of one CPU that wake each other in turn: what `make bench` has tracers look at.
 *
 *	bench-pingpong CPU BLOCKS ROUNDS fifo|other
 *
 * A round is two wake-ups, two switches and four system calls.  Prints how much time of the CPU a round took in a block, in
 * ns, of all blocks but the quickest tenth at least: what others do there meanwhile, and to its caches, does not show.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"

#define PRIORITY 80
#define WARM_UP 2
#define QUICKEST 10

static int there[2], back[2];

static void *answer(void *unused)
{
	char ball;

	(void)unused;
	while (read(there[0], &ball, 1) == 1)
		if (write(back[1], &ball, 1) != 1)
			break;
	return NULL;
}

static double round_ns(long rounds)
{
	int64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	char ball = 0;

	for (long i = 0; i < rounds; i++)
		if (write(there[1], &ball, 1) != 1 || read(back[0], &ball, 1) != 1)
			exit(1);
	return (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / (double)rounds;
}

static int ascending(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return (difference > 0) - (difference < 0);
}

static void settle(int cpu, bool fifo)
{
	struct sched_param parameters = {.sched_priority = PRIORITY};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || (fifo && sched_setscheduler(0, SCHED_FIFO, &parameters))) {
		perror("bench-pingpong");
		exit(1);
	}
	mlockall(MCL_CURRENT | MCL_FUTURE);
}

int main(int argc, char **argv)
{
	long blocks = argc == 5 ? atol(argv[2]) : 0, rounds = argc == 5 ? atol(argv[3]) : 0;
	double *taken = blocks > 0 ? calloc((size_t)blocks, sizeof(*taken)) : NULL;
	pthread_t partner;

	if (!taken || rounds <= 0) {
		fputs("bench-pingpong CPU BLOCKS ROUNDS fifo|other\n", stderr);
		return 2;
	}
	settle(atoi(argv[1]), !strcmp(argv[4], "fifo"));
	if (pipe(there) || pipe(back) || pthread_create(&partner, NULL, answer, NULL))
		return 1;
	for (int i = 0; i < WARM_UP; i++)
		round_ns(rounds);
	for (long i = 0; i < blocks; i++)
		taken[i] = round_ns(rounds);
	qsort(taken, (size_t)blocks, sizeof(*taken), ascending);
	printf("%.1f\n", taken[blocks / QUICKEST]);
	close(there[1]);
	pthread_join(partner, NULL);
	return 0;
}
