/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time of each soft-IRQ, less nested interrupts.  With PREEMPT_RT a thread runs soft-IRQs; time in which that thread is
 * preempted does not count.
 */
#include "noise.h"

SEC("?tp_btf/softirq_entry")
int BPF_PROG(noise_softirq_entry, unsigned int number)
{
	struct noise *noise = this_noise();

	if (!noise)
		return 0;
	noise->softirq_number = number;
	noise->softirq_pid = (u32)bpf_get_current_pid_tgid();
	noise->softirq_taken_ns = noise->taken_ns;
	noise->paused_ns = 0;
	noise->softirq_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("?tp_btf/softirq_exit")
int BPF_PROG(noise_softirq_exit, unsigned int number)
{
	struct noise *noise = this_noise();
	u64 now_ns = bpf_ktime_get_ns();
	struct disturbance disturbance = {0};

	if (!noise || !noise->softirq_ns || noise->softirq_number != number ||
	    noise->softirq_pid != (u32)bpf_get_current_pid_tgid())
		return 0;
	disturbance.begin_ns = noise->softirq_ns;
	disturbance.ns = now_ns - noise->softirq_ns - (noise->taken_ns - noise->softirq_taken_ns);
	disturbance.interruption = (struct interruption){noise->softirq_ns, now_ns, INTERRUPTION_SOFTIRQ, number};
	noise->taken_ns += disturbance.ns;
	noise->softirq_ns = 0;
	noise_add(STATION_noise_softirq, &disturbance);
	return 0;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(noise_softirq_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct noise *noise = this_noise();
	u64 now_ns;

	if (!noise || !noise->softirq_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if ((u32)prev->pid == noise->softirq_pid && !noise->paused_ns) {
		/* Time of interrupts until it continues does not count either. */
		noise->softirq_taken_ns = noise->taken_ns - noise->softirq_taken_ns;
		noise->paused_ns = now_ns;
	} else if ((u32)next->pid == noise->softirq_pid && noise->paused_ns) {
		noise->softirq_taken_ns = noise->taken_ns - noise->softirq_taken_ns;
		noise->softirq_ns += now_ns - noise->paused_ns;
		noise->paused_ns = 0;
	}
	return 0;
}
