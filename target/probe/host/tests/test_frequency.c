/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits and throttles of CPUs, as files in a folder of the test's own. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "frequency.h"

static char folder[] = "/tmp/test-frequency-XXXXXX";

static void put(int cpu, const char *part, const char *name, int64_t value)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu%d", folder, cpu);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/cpu%d/%s", folder, cpu, part);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/cpu%d/%s/%s", folder, cpu, part, name);
	file = fopen(path, "w");
	check(file && fprintf(file, "%lld\n", (long long)value) > 0);
	if (file)
		fclose(file);
}

static void take_away(int cpu, const char *part, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/cpu%d/%s/%s", folder, cpu, part, name);
	check(unlink(path) == 0);
}

static void frequency_close(struct frequency *frequency)
{
	free(frequency->most_khz);
	free(frequency->packages);
}

/* -1: not known. */
static int64_t counted(struct frequency *frequency, enum counter counter)
{
	struct counters counters = {0};

	frequency_count(frequency, &counters);
	return counters.known[counter] ? counters.value[counter] : -1;
}

static void limits(void)
{
	struct cpu_list cpus = {.count = 2, .cpu = {0, 3}};
	struct frequency frequency;

	put(0, "cpufreq", "scaling_max_freq", 2400000);
	put(3, "cpufreq", "scaling_max_freq", 1800000);
	frequency_open(&frequency, folder, &cpus);
	check(counted(&frequency, COUNTER_FREQUENCY_LIMITED) == 0);
	put(3, "cpufreq", "scaling_max_freq", 1200000);
	check(counted(&frequency, COUNTER_FREQUENCY_LIMITED) == 1);
	check(counted(&frequency, COUNTER_FREQUENCY_LIMITED) == 2);
	put(3, "cpufreq", "scaling_max_freq", 1800000);
	check(counted(&frequency, COUNTER_FREQUENCY_LIMITED) == 2);
	put(0, "cpufreq", "scaling_max_freq", 2600000);
	check(counted(&frequency, COUNTER_FREQUENCY_LIMITED) == 2);
	check(counted(&frequency, COUNTER_THERMAL_THROTTLED) == -1);
	frequency_close(&frequency);
}

static void throttles(void)
{
	struct cpu_list cpus = {.count = 2, .cpu = {0, 3}};
	struct frequency frequency;

	put(0, "thermal_throttle", "core_throttle_count", 4);
	frequency_open(&frequency, folder, &cpus);
	check(counted(&frequency, COUNTER_THERMAL_THROTTLED) == -1); /* the other does not tell */
	frequency_close(&frequency);
	put(3, "thermal_throttle", "core_throttle_count", 38);
	put(0, "thermal_throttle", "package_throttle_count", 7);
	frequency_open(&frequency, folder, &cpus);
	check(counted(&frequency, COUNTER_THERMAL_THROTTLED) == 49);
	put(0, "thermal_throttle", "package_throttle_count", 8); /* the whole package was too hot, no core by itself */
	check(counted(&frequency, COUNTER_THERMAL_THROTTLED) == 50);
	put(3, "thermal_throttle", "core_throttle_count", 40);
	check(counted(&frequency, COUNTER_THERMAL_THROTTLED) == 52);
	take_away(0, "thermal_throttle", "package_throttle_count");
	check(counted(&frequency, COUNTER_THERMAL_THROTTLED) == -1);
	frequency_close(&frequency);
}

static void nothing_to_see(void)
{
	struct cpu_list one = {.count = 1, .cpu = {7}};
	struct frequency frequency;

	frequency_open(&frequency, folder, &one);
	check(counted(&frequency, COUNTER_FREQUENCY_LIMITED) == -1 && counted(&frequency, COUNTER_THERMAL_THROTTLED) == -1);
	put(7, "cpufreq", "scaling_max_freq", 1000000); /* what it was at first is not known */
	check(counted(&frequency, COUNTER_FREQUENCY_LIMITED) == -1);
	frequency_close(&frequency);
}

int main(void)
{
	char remove[64];

	if (!mkdtemp(folder))
		return 1;
	limits();
	throttles();
	nothing_to_see();
	snprintf(remove, sizeof(remove), "rm -r %s", folder);
	return system(remove) != 0 || failures != 0;
}
