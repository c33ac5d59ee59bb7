/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

const char *tracefs_instance;

int tracefs_open(struct run *run, const char *name)
{
	char path[512];
	int fd;

	if (!tracefs_instance) {
		run_not_applicable(run, "the kernel measures this in an instance of tracefs; fastenough run creates one, or give "
				   "--instance");
		return -1;
	}
	snprintf(path, sizeof(path), "%s/%s", tracefs_instance, name);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		run_not_applicable(run, "%s: %s", path, strerror(errno));
	return fd;
}

int tracefs_place(const struct run *run, int cpu)
{
	const struct cpu_list *cpus = &run_settings(run)->cpus;

	for (int i = 0; i < cpus->count; i++)
		if (cpus->cpu[i] == cpu)
			return i;
	return -1;
}
