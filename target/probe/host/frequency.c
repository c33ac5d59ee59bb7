/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frequency.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST "cpufreq/scaling_max_freq" /* cooling by software lowers it too */
#define THROTTLED "thermal_throttle/core_throttle_count"
#define PACKAGE_THROTTLED "thermal_throttle/package_throttle_count"

static bool read_of(const struct frequency *frequency, int index, const char *name, int64_t *value)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/cpu%d/%s", frequency->folder, frequency->cpus.cpu[index], name);
	return read_number(path, value);
}

void frequency_open(struct frequency *frequency, const char *folder, const struct cpu_list *cpus)
{
	int64_t times;

	*frequency = (struct frequency){.folder = folder, .cpus = *cpus, .throttles = true};
	frequency->most_khz = calloc((size_t)cpus->count + 1, sizeof(int64_t));
	frequency->packages = calloc((size_t)cpus->count + 1, sizeof(bool));
	if (!frequency->most_khz || !frequency->packages)
		abort();
	for (int i = 0; i < cpus->count; i++) {
		read_of(frequency, i, MOST, &frequency->most_khz[i]);
		frequency->throttles &= read_of(frequency, i, THROTTLED, &times);
		frequency->packages[i] = read_of(frequency, i, PACKAGE_THROTTLED, &times);
	}
}

static void count_throttles(const struct frequency *frequency, struct counters *counters)
{
	int64_t of_cpu, times = 0;

	if (!frequency->throttles)
		return;
	for (int i = 0; i < frequency->cpus.count; i++) {
		if (!read_of(frequency, i, THROTTLED, &of_cpu))
			return;
		times += of_cpu;
		if (!frequency->packages[i])
			continue;
		if (!read_of(frequency, i, PACKAGE_THROTTLED, &of_cpu))
			return;
		times += of_cpu;
	}
	counter_set(counters, COUNTER_THERMAL_THROTTLED, times);
}

static void count_limits(struct frequency *frequency, struct counters *counters)
{
	bool limited = false;
	int64_t khz;

	for (int i = 0; i < frequency->cpus.count; i++) {
		if (!frequency->most_khz[i] || !read_of(frequency, i, MOST, &khz))
			return;
		limited |= khz < frequency->most_khz[i];
	}
	frequency->looks_limited += limited;
	counter_set(counters, COUNTER_FREQUENCY_LIMITED, frequency->looks_limited);
}

void frequency_count(struct frequency *frequency, struct counters *counters)
{
	count_throttles(frequency, counters);
	count_limits(frequency, counters);
}
