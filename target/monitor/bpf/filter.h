/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the tasks whose wake-ups are measured. */
#ifndef FILTER_H
#define FILTER_H

#include "programs.h"

/* The cheap part of the filter, tested first on every wake-up and switch of every task. */
static __always_inline bool may_match(const struct task_struct *task)
{
	return filter.policies >> (task->policy & 31) & 1 && task->prio <= filter.prio_most && task->pid &&
	       (!filter.pid || task->pid == filter.pid || task->tgid == filter.pid);
}

static __always_inline bool comm_matches(const struct task_struct *task)
{
	char comm[COMM_SIZE];

	if (!filter.comm_size)
		return true;
	bpf_probe_read_kernel(comm, sizeof(comm), task->comm);
	for (u32 i = 0; i < COMM_SIZE; i++)
		if (i < filter.comm_size && comm[i] != filter.comm[i])
			return false;
	return true;
}

static __always_inline u64 ancestor_id(const struct cgroup *cgroup, u32 level)
{
	const struct cgroup___before_6_1 *older = (const void *)cgroup;
	struct cgroup *ancestor = NULL;
	u64 id = 0;

	if (bpf_core_field_exists(cgroup->ancestors)) {
		bpf_probe_read_kernel(&ancestor, sizeof(ancestor), __builtin_preserve_access_index(&cgroup->ancestors[0]) + level);
		return BPF_CORE_READ(ancestor, kn, id);
	}
	bpf_probe_read_kernel(&id, sizeof(id), __builtin_preserve_access_index(&older->ancestor_ids[0]) + level);
	return id;
}

static __always_inline bool cgroup_matches(const struct task_struct *task)
{
	const struct cgroup *cgroup;

	if (!filter.cgroup)
		return true;
	cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	return (u32)BPF_CORE_READ(cgroup, level) >= filter.cgroup_level &&
	       ancestor_id(cgroup, filter.cgroup_level) == filter.cgroup;
}

static __always_inline bool matches_filter(const struct task_struct *task)
{
	return may_match(task) && comm_matches(task) && cgroup_matches(task);
}

#endif
