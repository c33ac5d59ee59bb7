/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of interrupts, soft-IRQs, policies and idle states. */
#include <stdio.h>
#include <string.h>

#include "state.h"

const char *const station_names[STATIONS] = {
#define STATION(NAME, TEXT, ...) TEXT,
#include "stations.inc"
#undef STATION
};

/* Reads the first line of a file; false if there is none. */
static bool read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool success = file && fgets(line, size, file);

	if (file)
		fclose(file);
	if (success)
		line[strcspn(line, "\n")] = '\0';
	return success && *line;
}

const char *name_of_interrupt(unsigned number)
{
	static char name[64];
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/irq/%u/actions", number);
	if (!read_line(path, name, sizeof(name)))
		snprintf(name, sizeof(name), "%u", number);
	return name;
}

const char *name_of_idle_state(unsigned cpu, int state)
{
	static char name[32];
	char path[96];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/name", cpu, state);
	if (!read_line(path, name, sizeof(name)))
		snprintf(name, sizeof(name), "%d", state);
	return name;
}

static const char *of_list(const char *const *names, size_t size, unsigned number)
{
	static char unknown[16];

	if (number < size && names[number])
		return names[number];
	snprintf(unknown, sizeof(unknown), "%u", number);
	return unknown;
}

const char *name_of_softirq(unsigned number)
{
	static const char *const names[] = {"hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched",
					    "hrtimer", "rcu"};

	return of_list(names, sizeof(names) / sizeof(*names), number);
}

const char *name_of_policy(int policy)
{
	static const char *const names[] = {"other", "fifo", "rr", "batch", NULL, "idle", "deadline", "ext"};

	return of_list(names, sizeof(names) / sizeof(*names), (unsigned)policy);
}

const char *name_of_vector(unsigned vector)
{
	static const char *const names[] = {
		NULL,
#define VECTOR(NAME) #NAME,
		VECTORS(VECTOR)
#undef VECTOR
	};

	return vector < VECTOR_DEVICE ? names[vector] : name_of_interrupt(vector - VECTOR_DEVICE);
}
