/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Storage of the records of selected tasks.  Each task has a place in an array, by its PID: a lookup costs a tenth of that
 * in a hash table.  A second task with the same place is stored in a hash table.
 */
#ifndef TASKS_H
#define TASKS_H

#include "task.h"

#define PLACES 1024 /* a power of two */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, struct task);
} places SEC(".maps");

/* The PID that owns each place; resolves races between two tasks. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, u32);
} owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct task);
} others SEC(".maps");

static const struct task no_task = {};

fe_u32 crowded = 0; /* some task is in the hash table */

static __always_inline struct task *place_of(u32 pid)
{
	u32 place = pid & (PLACES - 1);

	return bpf_map_lookup_elem(&places, &place);
}

static __always_inline struct task *find(u32 pid)
{
	struct task *task = place_of(pid);

	if (task && task->pid == pid)
		return task;
	return crowded ? bpf_map_lookup_elem(&others, &pid) : NULL;
}

static __noinline int make(u32 pid)
{
	u32 place = pid & (PLACES - 1);
	struct task *task;

	if (bpf_map_update_elem(&owners, &place, &pid, BPF_NOEXIST)) {
		crowded = 1;
		bpf_map_update_elem(&others, &pid, &no_task, BPF_NOEXIST);
		return 0;
	}
	bpf_map_update_elem(&places, &place, &no_task, BPF_ANY);
	task = place_of(pid);
	if (task)
		task->pid = pid;
	return 0;
}

/* The caller holds the kernel's lock of the task's wake-ups, so only one CPU creates its record. */
static __always_inline struct task *find_or_make(u32 pid)
{
	struct task *task = find(pid);

	if (task)
		return task;
	make(pid);
	return find(pid);
}

static __always_inline void forget(u32 pid)
{
	u32 place = pid & (PLACES - 1);
	struct task *task = place_of(pid);

	if (task && task->pid == pid) {
		task->pid = 0;
		bpf_map_delete_elem(&owners, &place);
	} else if (crowded)
		bpf_map_delete_elem(&others, &pid);
}

#endif
