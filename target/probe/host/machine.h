/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System activity during the run: counters that explain latencies. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "cgroup.h"
#include "counters.h"
#include "cpu_time.h"
#include "frequency.h"
#include "options.h"

struct run;
struct worker;

struct machine {
	int *msr_fd; /* one per measured CPU; -1 where there is none */
	struct cpu_list cpus;
	int64_t wall_offset_ns;
	int64_t clock_step_ns; /* all steps so far, each by its size */
	int clock_set_fd;      /* signals when the wall clock was set; -1: not supported */
	int64_t clock_sets;
	int64_t boot_offset_ns, suspended_ns;
	struct cpu_time cpu_time;
	struct cgroup cgroup;
	struct frequency frequency;
	int64_t rt_runtime_ns, rt_period_ns; /* 0: no throttling */
	int64_t rt_since_ns;		     /* when the CPU time was last compared with what is granted */
	int64_t throttled;
	int64_t usage[COUNTERS]; /* of the measuring threads; the greatest reading so far */
	struct counters_seen seen;
};

void machine_open(struct run *run);
/* Restarts the comparison of CPU time with the real-time budget. */
void machine_restart_comparison(struct run *run);
/* All counters, from the beginning of time: differences are what counts. */
void machine_read(struct run *run, struct counters *counters);
/* One of them only. */
void machine_read_smi(struct machine *machine, struct counters *counters);
bool machine_is_virtual(void);

/* Number of migrations of a worker's thread so far; -1 if this kernel does not report it. */
int64_t machine_migrations(const struct worker *worker);

#endif
