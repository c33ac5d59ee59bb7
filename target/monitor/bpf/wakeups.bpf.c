/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wake-ups of wanted tasks, from what made them runnable to their return to user space.
 *
 * On the way there only instants are noted.  They are counted when the task has given up its CPU again (or is woken
 * before it did), so that counting delays nothing of what it counts.  What wakes a task and what runs it may be two CPUs at
 * once: each side has its own part of struct task, and tells the other by a number, `woken`, which the waker increases
 * last.  The side that runs it takes what it finds when the number is another than the one it took last.
 */
#include "filter.h"
#include "tasks.h"

#define SHORT_NS 20000 /* who had the CPU for less is not noted while others wait */

fe_u64 unseen = 0;   /* of which not even the switch to the task was told: kernels tell nothing while some threads run */
fe_u64 no_sleep = 0; /* woken before they slept: they are runnable and running at once */

/*
 * Waking --------------------------------------------------------------------------------------------
 */

/* What wakes a task now, on this CPU. */
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
	/* The clock that handlers of timers are given may be ahead of this one by less than a tick of its counter. */
	if (waking->runnable_ns < waking->interrupt_ns)
		waking->runnable_ns = waking->interrupt_ns;
}

static __always_inline u64 beyond(u64 worst_ns)
{
	return wanted.threshold_ns && wanted.threshold_ns < worst_ns ? wanted.threshold_ns : worst_ns;
}

static __always_inline u32 cpu_of(const struct task_struct *task)
{
	const struct task_struct___before_5_16 *older = (const void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return BPF_CORE_READ(older, cpu);
}

/* Of the CPU that it is to run on.  Where it is there still, what happens there next is of this wake-up. */
static __always_inline void call_attention(const struct task_struct *task)
{
	struct cpu *there = cpu_state(cpu_of(task));

	if (!there)
		return;
	there->waiting = 1;
	if (task->on_cpu)
		there->open = there->awaits = 1;
}

/* One that was wanted before sleeps as somebody else's. */
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

	if (!is_wanted(woken)) {
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
	call_attention(woken);
	return 0;
}

/*
 * Running -------------------------------------------------------------------------------------------
 */

/*
 * The kernel counts a task's sleeps, whatever it tells of them: those that ended and that no wake-up accounts for are unseen,
 * be it that neither what woke the task nor its switch was told, be it that it even slept again meanwhile.
 */
static __always_inline bool settle(struct task *task, u64 slept, u64 told)
{
	bool more = task->slept && slept > task->slept + told;

	if (more)
		__sync_fetch_and_add(&unseen, slept - task->slept - told);
	task->slept = slept;
	return more;
}

/* The wake-up that was noted last, from running_ns on; 0: of a task that had not slept. */
static __always_inline void take(struct task *task, u64 slept, u64 running_ns)
{
	u64 before = task->woken - task->taken - 1;

	if (before)
		__sync_fetch_and_add(&unmatched, before);
	settle(task, slept, running_ns ? before + 1 : before);
	task->taken = task->woken;
	task->wakeup = task->waking;
	task->wakeup.running_ns = running_ns ? running_ns : task->waking.runnable_ns;
	if (!running_ns)
		__sync_fetch_and_add(&no_sleep, 1);
	task->idle_left = task->idle_state;
	task->knows = task->waking_knows;
	if (task->knows)
		task->at_wakeup = task->interrupted;
	/* Of those that another task woke, no station lasts until their return. */
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

static __always_inline bool wants_to_sleep(bool preempted, const struct task_struct *task)
{
	const struct task_struct___before_5_14 *older = (const void *)task;

	if (preempted)
		return false;
	return bpf_core_field_exists(task->__state) ? task->__state != 0 : BPF_CORE_READ(older, state) != 0;
}

/* A task gives up its CPU. */
static __always_inline void leave(struct cpu *cpu, u32 id, const struct task_struct *task_struct, bool sleeps,
				  const struct task_struct *next)
{
	struct task *task = find((u32)task_struct->pid);
	u64 slept = task_struct->nvcsw - sleeps; /* that which begins now is in the kernel's count already */

	cpu->open = cpu->awaits = 0;
	if (!task)
		return;
	if (settle(task, slept, 0))
		task->taken = task->woken;
	if (task->state && (sleeps || task->state == OVER || task->woken != task->taken))
		count(cpu, id, task, task_struct);
	if (!sleeps && task->woken != task->taken)
		take(task, slept, 0);
	if (task->state == RUNNING && !(task->knows & KNOWS_AFTER)) {
		task->knows |= KNOWS_AFTER;
		describe(&task->after, next);
	}
}

/* A task gets the CPU; returns what is noted of it if it was woken and waited until now. */
static __always_inline struct task *enter(struct cpu *cpu, u32 id, const struct task_struct *task_struct)
{
	struct task *task = find((u32)task_struct->pid);
	bool waited = task && task->woken != task->taken;

	if (!task)
		return NULL;
	if (waited) {
		if (task->state)
			count(cpu, id, task, task_struct);
		take(task, task_struct->nvcsw, bpf_ktime_get_ns());
	} else {
		settle(task, task_struct->nvcsw, 0);
	}
	cpu->open = task->state != NONE;
	cpu->awaits = task->state == RUNNING;
	return waited ? task : NULL;
}

/* Who had the CPU until now, and whom others have waited for so long that it matters who it was. */
static __always_inline void note_holder(struct cpu *cpu, const struct task_struct *task, const struct task *waited)
{
	struct holder *holder = &cpu->holders[cpu->holder_count & (HOLDERS - 1)];

	if (waited && waited->wakeup.running_ns - waited->wakeup.runnable_ns < SHORT_NS)
		return;
	cpu->holder_count++;
	holder->until_ns = waited ? waited->wakeup.running_ns : bpf_ktime_get_ns();
	holder->pid = task->pid;
	holder->policy = (s32)task->policy;
	holder->prio = task->prio;
	bpf_probe_read_kernel(holder->comm, sizeof(holder->comm), task->comm);
}

/* No handler outlasts a switch, whatever was seen of its end; a thread serves its device's interrupt until it sleeps. */
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
	bool sleeps;

	if (!cpu)
		return 0;
	sleeps = wants_to_sleep(preempted, prev);
	switch_origin(cpu, prev, next, sleeps);
	if (cpu->open || (cpu->pid != (u32)prev->pid && may_be_wanted(prev)))
		leave(cpu, id, prev, sleeps, next);
	cpu->pid = (u32)next->pid;
	if (may_be_wanted(next))
		waited = enter(cpu, id, next);
	if (cpu->waiting)
		note_holder(cpu, prev, waited);
	if (!waited)
		return 0;
	cpu->waiting = 0;
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
		take(task, BPF_CORE_READ(current, nvcsw), 0);
	}
	if (task->state == RUNNING) {
		task->wakeup.return_ns = task->wakeup.no_return ? 0 : now_ns;
		task->state = OVER;
	}
	return 0;
}

/* Behind the last switch, which counts what is left. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *gone)
{
	forget((u32)gone->pid);
	return 0;
}
