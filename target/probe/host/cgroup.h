/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU budgets of this process's control groups, and how often they were used up. */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_LEVELS 32
#define CGROUP_PATH 512

struct cgroup {
	bool known; /* a hierarchy that can limit CPU time is mounted and holds this process */
	int levels;
	int stat_fd[CGROUP_LEVELS]; /* cpu.stat of the own group and of those above it but the root; -1: cannot be opened */
	int64_t rt_runtime_us, rt_period_us; /* the tightest budget of real-time tasks; period 0: groups have none */
	char rt_path[CGROUP_PATH];	     /* the file that holds it */
};

/* The groups of the process whose folder of /proc this is. */
void cgroup_open(struct cgroup *cgroup, const char *proc);
/* Periods in which tasks of these groups waited because a quota (cpu.max, cpu.cfs_quota_us) was used up; false if the count of
 * any group is unknown. */
bool cgroup_throttled(const struct cgroup *cgroup, int64_t *periods);

#endif
