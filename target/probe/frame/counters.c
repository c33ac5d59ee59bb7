/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "counters.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NUMBER_SIZE 32

const char *const counter_names[COUNTERS] = {
	[COUNTER_STEAL_NS] = "steal_ns",
	[COUNTER_SMI] = "smi",
	[COUNTER_CLOCK_STEP_NS] = "clock_step_ns",
	[COUNTER_CLOCK_SETS] = "clock_sets",
	[COUNTER_SUSPENDED_NS] = "suspended_ns",
	[COUNTER_MAJOR_FAULTS] = "major_faults",
	[COUNTER_MINOR_FAULTS] = "minor_faults",
	[COUNTER_VOLUNTARY_SWITCHES] = "voluntary_switches",
	[COUNTER_INVOLUNTARY_SWITCHES] = "involuntary_switches",
	[COUNTER_MIGRATIONS] = "migrations",
	[COUNTER_THROTTLED] = "throttled",
	[COUNTER_CGROUP_THROTTLED] = "cgroup_throttled",
	[COUNTER_THERMAL_THROTTLED] = "thermal_throttled",
	[COUNTER_FREQUENCY_LIMITED] = "frequency_limited",
	[COUNTER_LEAST_IDLE_NS] = "least_idle_ns",
	[COUNTER_MOST_IDLE_NS] = "most_idle_ns",
};

bool read_number(const char *path, int64_t *value)
{
	char text[NUMBER_SIZE], *end = text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	long long number;

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	number = strtoll(text, &end, 10);
	if (end != text)
		*value = number;
	return end != text;
}

void counter_set(struct counters *counters, enum counter counter, int64_t value)
{
	counters->value[counter] = value;
	counters->known[counter] = true;
}

void counters_trust(struct counters_seen *seen, struct counters *now)
{
	for (int i = 0; i < COUNTERS; i++) {
		if (seen->last.known[i] && (!now->known[i] || now->value[i] < seen->last.value[i]))
			seen->lost[i] = true;
		now->known[i] = now->known[i] && !seen->lost[i];
	}
	seen->last = *now;
}

struct counters counters_since(const struct counters *now, const struct counters *then)
{
	struct counters since = {0};

	for (int i = 0; i < COUNTERS; i++)
		if (now->known[i] && then->known[i])
			counter_set(&since, (enum counter)i, now->value[i] - then->value[i]);
	return since;
}
