/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time of each interrupt: of a device, of the timer, or from another CPU. */
#include "noise.h"

struct noise_map noises SEC(".maps");

static __always_inline int begin(void)
{
	struct noise *noise = this_noise();

	if (noise)
		noise->irq_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int end(u32 kind, u32 number, u32 vector)
{
	struct noise *noise = this_noise();
	u64 now_ns = bpf_ktime_get_ns();
	struct disturbance disturbance = {.vector = vector};

	if (!noise || !noise->irq_ns)
		return 0;
	disturbance.begin_ns = noise->irq_ns;
	disturbance.ns = now_ns - noise->irq_ns;
	disturbance.interruption = (struct interruption){noise->irq_ns, now_ns, kind, number};
	noise->taken_ns += disturbance.ns;
	noise->irq_ns = 0;
	noise_add(STATION_noise_interrupt, &disturbance);
	return 0;
}

SEC("?tp_btf/irq_handler_entry")
int BPF_PROG(noise_irq_entry)
{
	return begin();
}

SEC("?tp_btf/irq_handler_exit")
int BPF_PROG(noise_irq_exit, int number)
{
	return end(INTERRUPTION_IRQ, (u32)number, VECTOR_DEVICE + (u32)number);
}

#define VECTOR_NOISE(NAME) \
	SEC("?tp_btf/" #NAME "_entry") \
	int BPF_PROG(noise_##NAME##_entry) \
	{ \
		return begin(); \
	} \
	SEC("?tp_btf/" #NAME "_exit") \
	int BPF_PROG(noise_##NAME##_exit) \
	{ \
		return end(INTERRUPTION_NONE, 0, VECTOR_##NAME); \
	}
VECTORS(VECTOR_NOISE)
