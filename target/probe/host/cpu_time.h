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
/* Steal time of all CPUs; and the sums, over all calls, of the least and of the greatest idle time of a CPU since the
 * previous call.  Each is known only if all CPUs report it. */
void cpu_time_count(struct cpu_time *cpu_time, struct counters *counters);
/* Steal time only; does not count as a call for the idle times. */
void cpu_time_count_steal(struct cpu_time *cpu_time, struct counters *counters);

#endif
