/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_time.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define STAT_SIZE (256 * 1024)

enum column { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

void cpu_time_open(struct cpu_time *cpu_time, const char *stat, const struct cpu_list *cpus)
{
	struct counters unused = {0};

	*cpu_time = (struct cpu_time){.stat_fd = open(stat, O_RDONLY | O_CLOEXEC), .cpus = *cpus};
	cpu_time->text = malloc(STAT_SIZE);
	cpu_time->idle_ticks = calloc((size_t)cpus->count + 1, sizeof(int64_t));
	if (!cpu_time->text || !cpu_time->idle_ticks)
		abort();
	cpu_time_count(cpu_time, &unused);
	cpu_time->least_idle_ticks = cpu_time->most_idle_ticks = 0;
}

/* The columns behind the name of one CPU; false where it has no line, as when it was unplugged. */
static bool columns_of(const struct cpu_time *cpu_time, int cpu, int64_t columns[COLUMNS])
{
	for (char *line = strstr(cpu_time->text, "\ncpu"); line; line = strstr(line + 1, "\ncpu")) {
		char *field = line + 4;

		if (strtol(field, &field, 10) != cpu)
			continue;
		for (int i = 0; i < COLUMNS; i++)
			columns[i] = (int64_t)strtoull(field, &field, 10);
		return true;
	}
	return false;
}

static bool read_stat(struct cpu_time *cpu_time)
{
	ssize_t length = cpu_time->stat_fd < 0 ? -1 : pread(cpu_time->stat_fd, cpu_time->text, STAT_SIZE - 1, 0);

	cpu_time->text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static int64_t tick_ns(void)
{
	return NS_PER_S / sysconf(_SC_CLK_TCK);
}

static bool count_steal(struct cpu_time *cpu_time, struct counters *counters)
{
	int64_t columns[COLUMNS], ticks = 0;

	for (int i = 0; i < cpu_time->cpus.count; i++) {
		if (!columns_of(cpu_time, cpu_time->cpus.cpu[i], columns))
			return false;
		ticks += columns[STEAL];
	}
	counter_set(counters, COUNTER_STEAL_NS, ticks * tick_ns());
	return true;
}

/* What waits for a disk is idle; the kernel may take some of that time back. */
static void count_idle(struct cpu_time *cpu_time, struct counters *counters)
{
	int64_t columns[COLUMNS] = {0}, least = INT64_MAX, most = 0;

	for (int i = 0; i < cpu_time->cpus.count; i++) {
		int64_t since;

		columns_of(cpu_time, cpu_time->cpus.cpu[i], columns);
		since = columns[IDLE] + columns[IOWAIT] - cpu_time->idle_ticks[i];
		since = since < 0 ? 0 : since;
		cpu_time->idle_ticks[i] += since;
		least = since < least ? since : least;
		most = since > most ? since : most;
	}
	cpu_time->least_idle_ticks += least;
	cpu_time->most_idle_ticks += most;
	counter_set(counters, COUNTER_LEAST_IDLE_NS, cpu_time->least_idle_ticks * tick_ns());
	counter_set(counters, COUNTER_MOST_IDLE_NS, cpu_time->most_idle_ticks * tick_ns());
}

void cpu_time_count_steal(struct cpu_time *cpu_time, struct counters *counters)
{
	if (read_stat(cpu_time))
		count_steal(cpu_time, counters);
}

void cpu_time_count(struct cpu_time *cpu_time, struct counters *counters)
{
	if (read_stat(cpu_time) && cpu_time->cpus.count && count_steal(cpu_time, counters))
		count_idle(cpu_time, counters);
}
