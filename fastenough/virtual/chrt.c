// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chrt for the guest, whose busybox has none: as much of it as the bench's settings use, with the words of
 * the one in util-linux.
 *
 *	chrt -p PID
 *	chrt [-R] -f|-r|-o|-b|-i -p PRIORITY PID
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	char letter;
	int policy;
	const char *name;
} policies[] = {
	{ 'f', SCHED_FIFO, "SCHED_FIFO" },
	{ 'r', SCHED_RR, "SCHED_RR" },
	{ 'o', SCHED_OTHER, "SCHED_OTHER" },
	{ 'b', SCHED_BATCH, "SCHED_BATCH" },
	{ 'i', SCHED_IDLE, "SCHED_IDLE" },
};
#define POLICIES (int)(sizeof(policies) / sizeof(*policies))

static int fail(const char *what, pid_t pid)
{
	fprintf(stderr, "chrt: failed to %s pid %d's policy: %m\n", what, (int)pid);
	return 1;
}

static int show(pid_t pid)
{
	struct sched_param parameters;
	int policy = sched_getscheduler(pid);

	if (policy < 0 || sched_getparam(pid, &parameters))
		return fail("get", pid);
	for (int i = 0; i < POLICIES; i++)
		if (policies[i].policy == (policy & ~SCHED_RESET_ON_FORK))
			printf("pid %d's current scheduling policy: %s%s\n", (int)pid, policies[i].name,
			       policy & SCHED_RESET_ON_FORK ? "|SCHED_RESET_ON_FORK" : "");
	printf("pid %d's current scheduling priority: %d\n", (int)pid, parameters.sched_priority);
	return 0;
}

static int set(pid_t pid, int policy, int priority)
{
	struct sched_param parameters = { .sched_priority = priority };

	return sched_setscheduler(pid, policy, &parameters) ? fail("set", pid) : 0;
}

int main(int argc, char **argv)
{
	int policy = -1, reset = 0, letter;

	while ((letter = getopt(argc, argv, "Rfrobip")) >= 0) {
		if (letter == 'R')
			reset = SCHED_RESET_ON_FORK;
		for (int i = 0; i < POLICIES; i++)
			if (policies[i].letter == letter)
				policy = policies[i].policy;
	}
	if (policy < 0 && argc - optind == 1)
		return show(atoi(argv[optind]));
	if (policy >= 0 && argc - optind == 2)
		return set(atoi(argv[optind + 1]), policy | reset, atoi(argv[optind]));
	fprintf(stderr, "usage: chrt -p PID, or chrt [-R] -f|-r|-o|-b|-i -p PRIORITY PID\n");
	return 2;
}
