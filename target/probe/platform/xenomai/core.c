/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether this kernel has a Cobalt core that the library can use.  The library ends the process that it refuses, with its
 * reason on stderr: a child tries first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xenomai/init.h>

#include "clock.h"
#include "cobalt.h"
#include "thread.h"

/* Two clocks that are one differ by the time between two readings. */
#define APART_NS NS_PER_S
/* Only a core that counts what happens to threads has it; another tells 0 of all counts. */
#define COUNTS "/proc/xenomai/sched/stat"

static void start(void)
{
	static char name[] = "fastenough";
	static char *words[] = {name, NULL};
	char *const *arguments = words;
	int count = 1;

	xenomai_init(&count, &arguments);
}

static void __attribute__((noreturn)) try(int said_fd)
{
	dup2(said_fd, STDERR_FILENO);
	start();
	_exit(EXIT_SUCCESS);
}

/* The last line of what a child says until it ends. */
static void last_line(int fd, char *line, size_t size)
{
	FILE *file = fdopen(fd, "r");

	while (file && fgets(line, (int)size, file))
		line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* The library begins with the time, its function and the thread in brackets. */
static const char *without_prefix(const char *line)
{
	const char *bracket = strstr(line, "] ");

	return bracket ? bracket + 2 : line;
}

static const char *refused(void)
{
	static char line[160] = "the library gives no reason";
	int pipes[2], status = 0;
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC))
		return strerror(errno);
	child = fork();
	if (child == 0)
		try(pipes[1]);
	close(pipes[1]);
	last_line(pipes[0], line, sizeof(line));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return strerror(errno);
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS ? NULL : without_prefix(line);
}

/* On kernels before Dovetail the core has a clock of its own, on which due times of this program mean nothing. */
static bool shares_clock(void)
{
	struct timespec now;
	int64_t apart_ns;

	if (__RT(clock_gettime(CLOCK_MONOTONIC, &now)))
		return false;
	apart_ns = mono_ns() - (now.tv_sec * NS_PER_S + now.tv_nsec);
	return apart_ns > -APART_NS && apart_ns < APART_NS;
}

const char *platform_unavailable(void)
{
	const char *reason = refused();

	if (reason)
		return reason;
	if (access(COUNTS, F_OK))
		return "the Cobalt core of this kernel counts no mode switches (no " COUNTS "); build it with CONFIG_XENO_OPT_STATS";
	start();
	return shares_clock() ? NULL : "the Cobalt core of this kernel has a clock of its own; use one based on Dovetail";
}
