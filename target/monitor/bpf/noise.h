/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For sources of noise: what takes a CPU from the task that runs on it.  One value is one disturbance, less what others took
 * from it in turn, so that no time counts twice.
 *
 *	#include "noise.h"
 *
 *	SEC("?tp_btf/softirq_exit")
 *	int BPF_PROG(noise_softirq_exit, unsigned int number) { ... noise_add(STATION_noise_softirq, &disturbance); }
 *
 * Programs whose names begin with noise_ are loaded only where noise is asked for.
 */
#ifndef NOISE_H
#define NOISE_H

#include "station.h"
#include "task.h"

struct noise {
	u64 taken_ns;               /* by interrupts and soft-IRQs so far */
	u64 irq_ns;                 /* when the interrupt began that is served; 0: none */
	u64 softirq_ns, paused_ns;  /* when the soft-IRQ began that runs, and when the thread that runs it lost the CPU */
	u64 softirq_taken_ns;       /* taken_ns then */
	u32 softirq_pid, softirq_number;
};

struct noise_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct noise);
};

extern struct noise_map noises SEC(".maps");

/* What is told of one that is worse than all before. */
struct disturbance {
	u64 begin_ns, ns;
	struct interruption interruption;
	u32 vector;                 /* VECTOR_NONE: none */
	const struct context *task, *by; /* who was off the CPU, and who had it; NULL: nobody */
};

static __always_inline struct noise *this_noise(void)
{
	u32 id = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&noises, &id);
}

static __always_inline void noise_tell(u32 id, u32 station, int found, const struct disturbance *disturbance)
{
	struct finding *finding = bpf_ringbuf_reserve(&findings, sizeof(*finding), 0);

	if (!finding) {
		__sync_fetch_and_add(&untold, 1);
		return;
	}
	__builtin_memset(finding->recent, 0, sizeof(finding->recent));
	__builtin_memset(&finding->wakeup, 0, sizeof(finding->wakeup));
	for (u32 i = 0; i < STATIONS; i++)
		finding->values[i] = NO_VALUE;
	finding->values[station] = (s64)disturbance->ns;
	finding->wakeup.interrupt_ns = finding->wakeup.runnable_ns = disturbance->begin_ns;
	finding->at_ns = finding->wakeup.running_ns = bpf_ktime_get_ns();
	finding->maxima = (u64)(found & FOUND_MAXIMUM) << station;
	finding->over = (u64)(found >> 1) << station;
	finding->cpu = id;
	finding->vector = disturbance->vector;
	finding->frequency_khz = 0;
	finding->idle_state = 0;
	__builtin_memset(finding->holders, 0, sizeof(finding->holders));
	finding->recent[0] = disturbance->interruption;
	tell_context(&finding->task, disturbance->task);
	tell_context(&finding->before, disturbance->by);
	tell_context(&finding->interrupted, NULL);
	tell_context(&finding->after, NULL);
	bpf_ringbuf_submit(finding, BPF_RB_NO_WAKEUP);
}

/* Counts one on this CPU: two of one station must not be counted at once. */
static __always_inline void noise_add(u32 station, const struct disturbance *disturbance)
{
	u32 id = bpf_get_smp_processor_id(), now = epoch;
	int found = counting ? station_add(cpu_state(id), now, id, station, (s64)disturbance->ns) : 0;

	if (found)
		noise_tell(id, station, found, disturbance);
}

#endif
