/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the measured CPUs spent their time: stolen by a hypervisor, idle. */
#ifndef CPU_TIME_H
#define CPU_TIME_H

#include <stdint.h>

#include "counters.h"
#include "options.h"

struct cpu_time {
	int stat_fd;
	char *text;
	struct cpu_list cpus;
	int64_t *idle_ticks; /* of each at the last look */
	int64_t least_idle_ticks, most_idle_ticks;
};

void cpu_time_open(struct cpu_time *cpu_time, const char *stat, const struct cpu_list *cpus);
/* Stolen time of all of them; and, added up over all looks, how long the CPU was idle that was idle least since the look
 * before, and the one that was idle most: what all of them kept to, whichever it was.  Each only where every CPU tells. */
void cpu_time_count(struct cpu_time *cpu_time, struct counters *counters);
/* The stolen time alone; this is no look. */
void cpu_time_count_steal(struct cpu_time *cpu_time, struct counters *counters);

#endif
