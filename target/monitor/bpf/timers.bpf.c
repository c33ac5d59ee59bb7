/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tracks the timer whose handler runs: tasks that it wakes are woken by this timer. */
#include "programs.h"

/* Stores the instants of a timer of any clock, converted to CLOCK_MONOTONIC. */
static __always_inline int begin(u64 timer, u32 soft, s64 offset_ns, s64 expiry_ns, s64 now_ns)
{
	struct cpu *cpu = this_cpu();
	struct expiring *expiring;

	if (!cpu)
		return 0;
	cpu->handling = 1;
	expiring = &cpu->expiring[soft ? SOFT : HARD];
	expiring->expiry_ns = expiry_ns - offset_ns;
	expiring->interrupt_ns = now_ns - offset_ns;
	expiring->timer = timer;
	return 0;
}

/* User space loads one of the three, by the kernel's BTF: a wrong one would load and return garbage. */

SEC("?tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_expire_pointer, struct hrtimer *timer, s64 *now)
{
	s64 now_ns = 0;

	bpf_probe_read_kernel(&now_ns, sizeof(now_ns), now);
	return begin((u64)timer, timer->is_soft, timer->base->offset, timer->_softexpires, now_ns);
}

/* From 7.2 on. */
SEC("?tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_expire_value, struct hrtimer *timer, s64 now_ns)
{
	return begin((u64)timer, timer->is_soft, timer->base->offset, timer->_softexpires, now_ns);
}

/* For 5.10, whose verifier rejects the pointer to an integer. */
SEC("?raw_tp/hrtimer_expire_entry")
int on_expire_raw(struct bpf_raw_tracepoint_args *ctx)
{
	const struct hrtimer *timer = (void *)ctx->args[0];
	s64 now_ns = 0;

	bpf_probe_read_kernel(&now_ns, sizeof(now_ns), (void *)ctx->args[1]);
	return begin((u64)timer, BPF_CORE_READ(timer, is_soft), BPF_CORE_READ(timer, base, offset),
		     BPF_CORE_READ(timer, _softexpires), now_ns);
}

/* The timer may be freed already: only its address is compared. */
SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_expired, struct hrtimer *timer)
{
	struct cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	if (cpu->expiring[HARD].timer == (u64)timer)
		cpu->expiring[HARD].timer = 0;
	else if (cpu->expiring[SOFT].timer == (u64)timer)
		cpu->expiring[SOFT].timer = 0;
	return 0;
}
