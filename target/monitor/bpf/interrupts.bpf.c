/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts and soft-IRQs: the time each takes, and the device interrupt that wakes a task: in its handler, in the thread
 * that the handler wakes, or in the soft-IRQ that the handler raises.
 */
#include "programs.h"

#define WAKE_THREAD 2    /* IRQ_WAKE_THREAD, a handler's return value */
#define TIMER_FLAG 0x200 /* __IRQF_TIMER: the interrupt is not of a device */

/* Soft-IRQs that continue the work of a device, by number: hi, net_tx, net_rx, block, irq_poll, tasklet. */
#define OF_DEVICES 0x7du

static __always_inline void note(struct cpu *cpu, u32 kind, u32 number, u64 begin_ns)
{
	struct interruption *interruption = &cpu->recent[cpu->recent_count++ & (RECENT - 1)];

	interruption->begin_ns = begin_ns;
	interruption->end_ns = bpf_ktime_get_ns();
	interruption->kind = kind;
	interruption->number = number;
}

SEC("?tp_btf/irq_handler_entry")
int BPF_PROG(on_interrupt, int number, struct irqaction *action)
{
	struct cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	cpu->handling = 1;
	cpu->irq_ns = bpf_ktime_get_ns();
	cpu->device.ns = action->flags & TIMER_FLAG ? 0 : cpu->irq_ns;
	cpu->device.number = (u32)number;
	cpu->vector = VECTOR_DEVICE + (u32)number;
	return 0;
}

SEC("?tp_btf/irq_handler_exit")
int BPF_PROG(on_interrupted, int number, struct irqaction *action, int done)
{
	struct cpu *cpu = this_cpu();
	u64 thread = (u64)action->thread;

	if (!cpu || !cpu->irq_ns)
		return 0;
	/* While the thread serves an earlier interrupt, its wake-ups may belong to that one. */
	if (done & WAKE_THREAD && cpu->device.ns && cpu->irq_thread != thread) {
		cpu->irq_thread = thread;
		cpu->threaded = cpu->device;
	}
	note(cpu, INTERRUPTION_IRQ, (u32)number, cpu->irq_ns);
	cpu->irq_ns = cpu->device.ns = 0;
	return 0;
}

SEC("?tp_btf/softirq_raise")
int BPF_PROG(on_raise, unsigned int number)
{
	struct cpu *cpu = this_cpu();

	if (cpu && cpu->device.ns && number < SOFTIRQS && OF_DEVICES >> number & 1 && !cpu->raised[number].ns)
		cpu->raised[number] = cpu->device;
	return 0;
}

SEC("?tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int number)
{
	struct cpu *cpu = this_cpu();

	if (!cpu || number >= SOFTIRQS)
		return 0;
	cpu->handling = 1;
	cpu->softirq_ns = bpf_ktime_get_ns();
	cpu->served = cpu->raised[number];
	cpu->raised[number].ns = 0;
	return 0;
}

SEC("?tp_btf/softirq_exit")
int BPF_PROG(on_softirq_done, unsigned int number)
{
	struct cpu *cpu = this_cpu();

	if (!cpu || !cpu->softirq_ns)
		return 0;
	note(cpu, INTERRUPTION_SOFTIRQ, number, cpu->softirq_ns);
	cpu->softirq_ns = cpu->served.ns = 0;
	return 0;
}

#define ON_VECTOR(NAME) \
	SEC("?tp_btf/" #NAME "_entry") \
	int BPF_PROG(on_##NAME) \
	{ \
		struct cpu *cpu = this_cpu(); \
		if (cpu) \
			cpu->vector = VECTOR_##NAME; \
		return 0; \
	}
VECTORS(ON_VECTOR)

/* The state is -1 when an idle state is left; the last one stays recorded. */
SEC("?tp_btf/cpu_idle")
int BPF_PROG(on_idle, unsigned int state, unsigned int id)
{
	struct cpu *cpu = cpu_state(id);

	if (cpu && (s32)state >= 0)
		cpu->idle_state = state + 1;
	return 0;
}

SEC("?tp_btf/cpu_frequency")
int BPF_PROG(on_frequency, unsigned int frequency_khz, unsigned int id)
{
	struct cpu *cpu = cpu_state(id);

	if (cpu)
		cpu->frequency_khz = frequency_khz;
	return 0;
}
