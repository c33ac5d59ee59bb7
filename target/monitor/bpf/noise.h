/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For sources of noise, which take a CPU from the running task.  One value is the time of one disturbance, less that of the
 * disturbances nested in it, so that no time counts twice.
 *
 *	#include "noise.h"
 *
 *	SEC("?tp_btf/softirq_exit")
 *	int BPF_PROG(noise_softirq_exit, unsigned int number) { ... noise_add(STATION_noise_softirq, &disturbance); }
 *
 * Programs whose names begin with noise_ are loaded only with --noise.
 */
#ifndef NOISE_H
#define NOISE_H

#include "station.h"
#include "task.h"

struct noise {
	u64 taken_ns;               /* by interrupts and soft-IRQs so far */
	u64 irq_ns;                 /* begin of the current interrupt; 0: none */
	u64 softirq_ns, paused_ns;  /* begin of the current soft-IRQ, and when its thread lost the CPU */
	u64 softirq_taken_ns;       /* taken_ns at the begin of the soft-IRQ */
	u32 softirq_pid, softirq_number;
};

struct noise_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct noise);
};

extern struct noise_map noises SEC(".maps");

/* A disturbance; reported if it is a new maximum or above the threshold. */
struct disturbance {
	u64 begin_ns, ns;
	struct interruption interruption;
	u32 vector;                 /* VECTOR_NONE: none */
	const struct context *task, *by; /* the preempted task, and the one on the CPU; NULL: none */
};

static __always_inline struct noise *this_noise(void)
{
	u32 id = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&noises, &id);
}

static __always_inline void noise_report(u32 id, u32 now, u32 station, int flags, const struct disturbance *disturbance)
{
	struct finding *finding = bpf_ringbuf_reserve(&findings, sizeof(*finding), 0);

	if (!finding) {
		__sync_fetch_and_add(&lost_findings, 1);
		return;
	}
	__builtin_memset(finding->recent, 0, sizeof(finding->recent));
	__builtin_memset(&finding->wakeup, 0, sizeof(finding->wakeup));
	for (u32 i = 0; i < STATIONS; i++)
		finding->values[i] = NO_VALUE;
	finding->values[station] = (s64)disturbance->ns;
	finding->wakeup.interrupt_ns = finding->wakeup.runnable_ns = disturbance->begin_ns;
	finding->at_ns = finding->wakeup.running_ns = bpf_ktime_get_ns();
	finding->maxima = (u64)(flags & VALUE_MAXIMUM) << station;
	finding->over = (u64)(flags >> 1) << station;
	finding->cpu = id;
	finding->epoch = now;
	finding->vector = disturbance->vector;
	finding->frequency_khz = 0;
	finding->idle_state = 0;
	finding->before_from_ns = finding->unknown_until_ns = 0;
	__builtin_memset(finding->holders, 0, sizeof(finding->holders));
	finding->recent[0] = disturbance->interruption;
	copy_context(&finding->task, disturbance->task);
	copy_context(&finding->before, disturbance->by);
	copy_context(&finding->interrupted, NULL);
	copy_context(&finding->after, NULL);
	bpf_ringbuf_submit(finding, BPF_RB_NO_WAKEUP);
}

/* Counts a disturbance on this CPU; calls for one station must not overlap. */
static __always_inline void noise_add(u32 station, const struct disturbance *disturbance)
{
	u32 id = bpf_get_smp_processor_id(), now = epoch;
	int flags = counting ? station_add(cpu_state(id), now, id, station, (s64)disturbance->ns) : 0;

	if (flags)
		noise_report(id, now, station, flags, disturbance);
}

#endif
