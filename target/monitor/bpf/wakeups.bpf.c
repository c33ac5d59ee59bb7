/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wake-ups of selected tasks, from the event that makes them runnable to their return to user space.
 *
 * Until the return only instants are recorded.  They are counted when the task gives up its CPU (or is woken before), so
 * counting delays no measured time.  Two CPUs may wake and run a task at once: each writes its own part of struct task.  The
 * waker increases `woken` last; the CPU that runs the task reads the waker's part when `woken` has changed.
 */
#include "filter.h"
#include "tasks.h"

fe_u64 unseen = 0;   /* wake-ups without any traced event: kernels suppress events while some threads run */
fe_u64 no_sleep = 0; /* tasks woken before they slept: runnable and running at once */

/*
 * Waking --------------------------------------------------------------------------------------------
 */

/* Determines what wakes a task now, on this CPU. */
static __always_inline void find_origin(struct cpu *cpu, struct wakeup *waking, const struct task_struct *task)
{
	const struct expiring *expiring = NULL;
	const struct device *device = &cpu->thread_serves;

	waking->expiry_ns = waking->interrupt_ns = 0;
	waking->origin = ORIGIN_TASK;
	if (cpu->expiring[HARD].timer)
		expiring = &cpu->expiring[HARD];
	else if (cpu->device.ns)
		device = &cpu->device;
	else if (cpu->expiring[SOFT].timer)
		expiring = &cpu->expiring[SOFT];
	else if (cpu->served.ns)
		device = &cpu->served;
	else if (cpu->irq_thread == (u64)task)
		device = &cpu->threaded;
	if (expiring) {
		waking->origin = ORIGIN_TIMER;
		waking->expiry_ns = (u64)expiring->expiry_ns;
		waking->interrupt_ns = (u64)expiring->interrupt_ns;
	} else if (device->ns) {
		waking->origin = ORIGIN_DEVICE;
		waking->interrupt_ns = device->ns;
		waking->device = (u32)device->number;
	}
	/* The time passed to timer handlers may be ahead of this clock by less than one tick of its counter. */
	if (waking->runnable_ns < waking->interrupt_ns)
		waking->runnable_ns = waking->interrupt_ns;
}

static __always_inline u64 beyond(u64 worst_ns)
{
	return filter.threshold_ns && filter.threshold_ns < worst_ns ? filter.threshold_ns : worst_ns;
}

static __always_inline u32 cpu_of(const struct task_struct *task)
{
	const struct task_struct___before_5_16 *older = (const void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return BPF_CORE_READ(older, cpu);
}

/* If the task is still on its CPU, the next events there belong to this wake-up. */
static __always_inline void open_wakeup(const struct task_struct *task)
{
	struct cpu *there = task->on_cpu ? cpu_state(cpu_of(task)) : NULL;

	if (there)
		there->open = there->awaits = 1;
}

/* A task that no longer matches the filter: its sleeps are no longer accounted. */
static __always_inline void forget_sleeps(u32 pid)
{
	struct task *task = find(pid);

	if (task)
		task->slept = 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *woken)
{
	u64 now_ns;
	struct task *task;
	struct cpu *cpu;

	if (!matches_filter(woken)) {
		forget_sleeps((u32)woken->pid);
		return 0;
	}
	now_ns = bpf_ktime_get_ns();
	cpu = this_cpu();
	task = find_or_make((u32)woken->pid);
	if (!cpu || !task) {
		__sync_fetch_and_add(&dropped, 1);
		return 0;
	}
	if (!task->slept)
		task->slept = woken->nvcsw - !woken->on_cpu;
	task->waking.runnable_ns = now_ns;
	task->waking.running_ns = task->waking.return_ns = 0;
	find_origin(cpu, &task->waking, woken);
	task->waking.no_return = task->waking.origin == ORIGIN_DEVICE && BPF_CORE_READ_BITFIELD(woken, in_iowait);
	task->waking_knows = 0;
	task->idle_state = 0;
	if (task->waking.expiry_ns &&
	    task->waking.interrupt_ns - task->waking.expiry_ns > beyond(cpu->worst[ORIGIN_TIMER].late_ns)) {
		task->waking_knows = KNOWS_INTERRUPTED;
		describe_current(&task->interrupted, (void *)bpf_get_current_task(), ctx);
		if (!task->interrupted.pid)
			task->idle_state = cpu->idle_state;
	}
	task->woken++;
	open_wakeup(woken);
	return 0;
}

/*
 * Running -------------------------------------------------------------------------------------------
 */

/*
 * The kernel counts a task's sleeps, traced or not.  Ended sleeps without a traced wake-up are unseen: neither the waking
 * nor the switch was traced, and the task may have slept again meanwhile.  True if there are any.
 */
static __always_inline bool account_sleeps(struct task *task, u64 slept, u64 traced)
{
	bool more = task->slept && slept > task->slept + traced;

	if (more)
		__sync_fetch_and_add(&unseen, slept - task->slept - traced);
	task->slept = slept;
	return more;
}

/* Begins the latest wake-up of a task, which runs on a CPU from running_ns on; 0: the task had not slept. */
static __always_inline void begin_wakeup(struct task *task, u32 id, u64 slept, u64 running_ns)
{
	u64 before = task->woken - task->taken - 1;

	if (before)
		__sync_fetch_and_add(&unmatched, before);
	account_sleeps(task, slept, running_ns ? before + 1 : before);
	task->taken = task->woken;
	task->cpu = id;
	task->wakeup = task->waking;
	task->wakeup.running_ns = running_ns ? running_ns : task->waking.runnable_ns;
	if (!running_ns)
		__sync_fetch_and_add(&no_sleep, 1);
	task->idle_left = task->idle_state;
	task->knows = task->waking_knows;
	if (task->knows)
		task->at_wakeup = task->interrupted;
	/* No station of wake-ups by another task needs the return to user space. */
	task->state = task->wakeup.origin == ORIGIN_TASK ? OVER : RUNNING;
}

static __always_inline bool is_worse(const struct cpu *cpu, const struct wakeup *wakeup)
{
	u64 first_ns = wakeup->expiry_ns ? wakeup->expiry_ns : wakeup->interrupt_ns;

	if (wakeup->origin >= ORIGINS)
		return false;
	return wakeup->running_ns - wakeup->runnable_ns > beyond(cpu->worst[wakeup->origin].waited_ns) ||
	       wakeup->running_ns - (first_ns ? first_ns : wakeup->runnable_ns) > beyond(cpu->worst[wakeup->origin].total_ns);
}

static __always_inline bool goes_to_sleep(bool preempted, const struct task_struct *task)
{
	const struct task_struct___before_5_14 *older = (const void *)task;

	if (preempted)
		return false;
	return bpf_core_field_exists(task->__state) ? task->__state != 0 : BPF_CORE_READ(older, state) != 0;
}

/* A task gives up its CPU. */
static __always_inline void switch_out(struct cpu *cpu, u32 id, const struct task_struct *task_struct, bool sleeps,
				  const struct task_struct *next)
{
	struct task *task = find((u32)task_struct->pid);
	u64 slept = task_struct->nvcsw - sleeps; /* the kernel's count includes the sleep that begins now */

	cpu->open = cpu->awaits = 0;
	if (!task)
		return;
	if (account_sleeps(task, slept, 0))
		task->taken = task->woken;
	if (task->state && (sleeps || task->state == OVER || task->woken != task->taken))
		count(cpu, id, task, task_struct);
	if (!sleeps && task->woken != task->taken)
		begin_wakeup(task, id, slept, 0);
	if (task->state == RUNNING && !(task->knows & KNOWS_AFTER)) {
		task->knows |= KNOWS_AFTER;
		describe(&task->after, next);
	}
}

/* A task gets the CPU; returns its record if it was woken and waited until now. */
static __always_inline struct task *switch_in(struct cpu *cpu, u32 id, const struct task_struct *task_struct)
{
	struct task *task = find((u32)task_struct->pid);
	bool waited = task && task->woken != task->taken;

	if (!task)
		return NULL;
	if (waited) {
		if (task->state)
			count(cpu, id, task, task_struct);
		begin_wakeup(task, id, task_struct->nvcsw, bpf_ktime_get_ns());
	} else {
		account_sleeps(task, task_struct->nvcsw, 0);
	}
	cpu->open = task->state != NONE;
	cpu->awaits = task->state == RUNNING;
	return waited ? task : NULL;
}

/* Records the task that had the CPU until now.  The time of the holder that it overwrites becomes unknown. */
static __always_inline void record_holder(struct cpu *cpu, const struct task_struct *task, u64 now_ns)
{
	struct holder *holder = &cpu->holders[cpu->holder_count & (HOLDERS - 1)];
	u64 from_ns = cpu->switched_ns;

	cpu->switched_ns = now_ns;
	if (now_ns - from_ns < HOLDER_LEAST_NS)
		return;
	cpu->holder_count++;
	if (holder->until_ns > cpu->unknown_until_ns)
		cpu->unknown_until_ns = holder->until_ns;
	holder->from_ns = from_ns;
	holder->until_ns = now_ns;
	holder->pid = task->pid;
	holder->policy = (s32)task->policy;
	holder->prio = task->prio;
	bpf_probe_read_kernel(holder->comm, sizeof(holder->comm), task->comm);
}

/* A handler ends before a switch, even if its end was not traced; a thread serves its device's interrupt until it sleeps. */
static __always_inline void switch_origin(struct cpu *cpu, const struct task_struct *prev, const struct task_struct *next,
					  bool sleeps)
{
	if (cpu->handling) {
		cpu->handling = 0;
		cpu->expiring[HARD].timer = cpu->expiring[SOFT].timer = 0;
		cpu->irq_ns = cpu->device.ns = cpu->softirq_ns = cpu->served.ns = 0;
	}
	if (!cpu->irq_thread)
		return;
	cpu->thread_serves.ns = 0;
	if (cpu->irq_thread == (u64)next)
		cpu->thread_serves = cpu->threaded;
	else if (cpu->irq_thread == (u64)prev && sleeps)
		cpu->irq_thread = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	u32 id = bpf_get_smp_processor_id();
	struct cpu *cpu = cpu_state(id);
	struct task *waited = NULL;
	u64 now_ns, from_ns;
	bool sleeps, traced;

	if (!cpu)
		return 0;
	sleeps = goes_to_sleep(preempted, prev);
	switch_origin(cpu, prev, next, sleeps);
	traced = cpu->pid == (u32)prev->pid;
	if (cpu->open || (cpu->pid != (u32)prev->pid && may_match(prev)))
		switch_out(cpu, id, prev, sleeps, next);
	cpu->pid = (u32)next->pid;
	if (may_match(next))
		waited = switch_in(cpu, id, next);
	now_ns = waited ? waited->wakeup.running_ns : bpf_ktime_get_ns();
	/* If the last switch was not traced, prev got the CPU at an unknown instant. */
	from_ns = traced ? cpu->switched_ns : now_ns;
	if (!traced)
		cpu->switched_ns = cpu->unknown_until_ns = now_ns;
	record_holder(cpu, prev, now_ns);
	if (!waited)
		return 0;
	waited->before_from_ns = from_ns;
	if (!is_worse(cpu, &waited->wakeup))
		return 0;
	waited->knows |= KNOWS_BEFORE;
	describe_current(&waited->before, prev, ctx);
	if (!prev->pid)
		waited->idle_left = cpu->idle_state;
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_return)
{
	u32 id = bpf_get_smp_processor_id();
	struct cpu *cpu = cpu_state(id);
	struct task *task;
	u64 now_ns;

	if (!cpu || !cpu->awaits)
		return 0;
	now_ns = bpf_ktime_get_ns();
	cpu->awaits = 0;
	task = find((u32)bpf_get_current_pid_tgid());
	if (!task)
		return 0;
	if (task->woken != task->taken) {
		const struct task_struct *current = (void *)bpf_get_current_task();

		if (task->state)
			count(cpu, id, task, current);
		begin_wakeup(task, id, BPF_CORE_READ(current, nvcsw), 0);
	}
	if (task->state == RUNNING) {
		task->wakeup.return_ns = task->wakeup.no_return ? 0 : now_ns;
		task->state = OVER;
	}
	return 0;
}

/* After the last switch, which counts the pending wake-up. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *gone)
{
	forget((u32)gone->pid);
	return 0;
}
