/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time of each preemption of a selected runnable task by other threads, less interrupts and soft-IRQs meanwhile.
 */
#include "filter.h"
#include "noise.h"

struct preempted {
	u64 begin_ns, taken_ns;
	u32 cpu;
	struct context task, by;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct preempted);
} noise_preempted SEC(".maps");

static const struct preempted none = {};

static __always_inline bool goes_on(bool preempted, const struct task_struct *task)
{
	const struct task_struct___before_5_14 *older = (const void *)task;

	return preempted || !(bpf_core_field_exists(task->__state) ? task->__state : BPF_CORE_READ(older, state));
}

static __always_inline void leave(const struct noise *noise, const struct task_struct *prev, const struct task_struct *next)
{
	u32 pid = (u32)prev->pid;
	struct preempted *preempted;

	bpf_map_update_elem(&noise_preempted, &pid, &none, BPF_ANY);
	preempted = bpf_map_lookup_elem(&noise_preempted, &pid);
	if (!preempted) {
		__sync_fetch_and_add(&dropped, 1);
		return;
	}
	preempted->taken_ns = noise->taken_ns;
	preempted->cpu = bpf_get_smp_processor_id();
	describe(&preempted->task, prev);
	describe(&preempted->by, next);
	preempted->begin_ns = bpf_ktime_get_ns();
}

static __always_inline void enter(const struct noise *noise, const struct task_struct *next)
{
	u32 pid = (u32)next->pid;
	struct preempted *preempted = bpf_map_lookup_elem(&noise_preempted, &pid);
	struct disturbance disturbance = {0};

	if (!preempted)
		return;
	/* A task that continues on another CPU has waited, but not for this CPU. */
	if (preempted->cpu == bpf_get_smp_processor_id()) {
		disturbance.begin_ns = preempted->begin_ns;
		disturbance.ns = bpf_ktime_get_ns() - preempted->begin_ns - (noise->taken_ns - preempted->taken_ns);
		disturbance.task = &preempted->task;
		disturbance.by = &preempted->by;
		noise_add(STATION_noise_thread, &disturbance);
	}
	bpf_map_delete_elem(&noise_preempted, &pid);
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(noise_thread_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct noise *noise = this_noise();

	if (!noise)
		return 0;
	if (matches_filter(prev) && goes_on(preempted, prev))
		leave(noise, prev, next);
	if (may_match(next))
		enter(noise, next);
	return 0;
}

SEC("?tp_btf/sched_process_free")
int BPF_PROG(noise_thread_free, struct task_struct *gone)
{
	u32 pid = (u32)gone->pid;

	bpf_map_delete_elem(&noise_preempted, &pid);
	return 0;
}
