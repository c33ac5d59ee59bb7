// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Delays by computing inside the kernel, each within one station of a wake-up by a timer.
 *
 * The timer of the wake-up is identified by CPU and expiry, the task as the one that this timer wakes.  Each computation is
 * limited by its end and by a number of iterations.
 */
#include "kernel.h"
#include "spin.h"

char LICENSE[] SEC("license") = "GPL";

volatile struct spin_order order;
volatile struct spin_window window;

struct turn {
	u64 until_ns, now_ns;
};

static long one_turn(u32 index, struct turn *turn)
{
	turn->now_ns = bpf_ktime_get_ns();
	return turn->now_ns >= turn->until_ns;
}

static __always_inline void compute(u64 begin_ns, u64 until_ns)
{
	struct turn turn = {.until_ns = until_ns};

	bpf_loop(SPIN_TURNS, one_turn, &turn, 0);
	window.begin_ns = begin_ns;
	window.end_ns = turn.now_ns;
}

static __always_inline bool ordered(u32 place)
{
	return order.place == place && order.cpu == bpf_get_smp_processor_id() && !window.end_ns;
}

/* Run on the CPU itself, in an interrupt that another CPU sends: no timer interrupt comes before the end. */
SEC("raw_tp")
int without_interrupts(void *unused)
{
	u64 now_ns = bpf_ktime_get_ns();

	if (now_ns < order.due_ns)
		compute(order.due_ns, order.due_ns + order.size_ns);
	return 0;
}

struct patience {
	u64 until_ns;
};

static long still_asleep(u32 index, struct patience *patience)
{
	return window.runnable || bpf_ktime_get_ns() >= patience->until_ns;
}

/* Runs in a thread of that CPU without preemption: the task becomes runnable, but does not get the CPU.  The delay begins
 * after the interrupt that woke the task, whose time is part of every wake-up. */
SEC("raw_tp")
int without_preemption(void *unused)
{
	struct patience patience = {.until_ns = order.due_ns + order.size_ns};
	u64 begin_ns;

	if (bpf_ktime_get_ns() >= order.due_ns)
		return 0;
	bpf_loop(SPIN_TURNS, still_asleep, &patience, 0);
	begin_ns = bpf_ktime_get_ns();
	if (window.runnable)
		compute(begin_ns, begin_ns + order.size_ns);
	return 0;
}

SEC("raw_tp/hrtimer_expire_entry")
int timer_expires(struct bpf_raw_tracepoint_args *arguments)
{
	struct hrtimer *timer = (void *)arguments->args[0];
	u64 begin_ns = bpf_ktime_get_ns();

	if (order.cpu != bpf_get_smp_processor_id() ||
	    BPF_CORE_READ(timer, _softexpires) - BPF_CORE_READ(timer, base, offset) != (s64)order.due_ns)
		return 0;
	window.expiring = 1;
	if (ordered(SPIN_INTERRUPT_TO_RUNNABLE))
		compute(begin_ns, begin_ns + order.size_ns);
	return 0;
}

SEC("raw_tp/sched_waking")
int task_woken(struct bpf_raw_tracepoint_args *arguments)
{
	struct task_struct *task = (void *)arguments->args[0];

	if (!window.expiring || order.cpu != bpf_get_smp_processor_id())
		return 0;
	window.expiring = 0;
	window.woken = BPF_CORE_READ(task, pid);
	window.runnable = 1;
	return 0;
}

SEC("raw_tp/sys_exit")
int task_returns(void *unused)
{
	u64 begin_ns = bpf_ktime_get_ns();

	if (window.woken && window.woken == (s32)bpf_get_current_pid_tgid() && ordered(SPIN_RUNNING_TO_RETURN))
		compute(begin_ns, begin_ns + order.size_ns);
	return 0;
}
