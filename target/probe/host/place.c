/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define GROUPS "/sys/fs/cgroup/"

/* The group's list of processes; -1 with errno, also where this is a file of anybody else's. */
static int open_processes(const char *cgroup, int flags)
{
	char path[4096];
	struct statfs system;
	int fd;

	snprintf(path, sizeof(path), "%s%s/cgroup.procs", *cgroup == '/' ? "" : GROUPS, cgroup);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0 || (!fstatfs(fd, &system) && (system.f_type == CGROUP2_SUPER_MAGIC || system.f_type == CGROUP_SUPER_MAGIC)))
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

int place_join(const char *cgroup)
{
	int fd = open_processes(cgroup, O_WRONLY), error;

	if (fd < 0)
		return errno;
	error = write(fd, "0", 1) == 1 ? 0 : errno;
	close(fd);
	return error;
}

bool place_joined(const char *cgroup)
{
	int fd = open_processes(cgroup, O_RDONLY), process;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	bool found = false;

	while (file && !found && fscanf(file, "%d", &process) == 1)
		found = process == getpid();
	if (file)
		fclose(file);
	return found;
}

int place_on(const struct cpu_list *cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < cpus->count; i++)
		CPU_SET(cpus->cpu[i], &set);
	return sched_setaffinity(0, sizeof(set), &set) ? errno : 0;
}

int place_read(struct cpu_list *cpus)
{
	cpu_set_t set;

	*cpus = (struct cpu_list){0};
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set))
		return errno;
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus->cpu[cpus->count++] = cpu;
	return 0;
}
