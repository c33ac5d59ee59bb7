/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts values in banks: a histogram for each station, CPU and epoch, mapped by user space. */
#include "programs.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct filter filter = {};

struct cpu_map cpus SEC(".maps");

fe_u32 recordings[2] = {}; /* number of the recording of each epoch, set by user space before the epoch begins */

/* User space sets the size, which depends on k, before the map is created. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct bank));
} banks SEC(".maps");

/* These maps have one purpose: an update of the second waits until all running programs have ended. */
struct waited_for {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} waited_for SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct waited_for);
} waiting SEC(".maps");

/* Keeps a value in one register, so that the verifier tracks its bounds: the compiler cannot recompute it. */
#define in_register(VALUE) asm volatile("" : "+r"(VALUE))

static __always_inline void count_lost(struct bank *bank, struct order *order)
{
	bank->lost++;
	bank->gaps++;
	order->before = 0;
}

/* The bucket of a value on the coarse scale, from its fine bucket, which contains the position of its highest bit. */
static __always_inline u64 coarse(u64 value, u64 index)
{
	u64 octave = index >> filter.k, shift = octave + filter.k - 1 - BANK_RISE_K;

	return octave ? (shift << BANK_RISE_K) + (value >> shift) : fe_hist_index(value, BANK_RISE_K);
}

/* Counts rises from value to value on the coarse scale, as the probe's frame does. */
static __always_inline void count_rise(struct bank *bank, struct order *order, u64 bucket)
{
	u64 before = order->before;

	in_register(bucket);
	order->before = (u32)bucket;
	if (bucket <= before || bucket + 1 > BANK_EDGES || before + 1 > BANK_EDGES)
		return;
	bank->rises[before + 1]++;
	bank->rises[bucket + 1]--;
}

/* The first value of a recording has no predecessor, and is a new maximum. */
static __always_inline void enter_recording(struct order *order, u32 epoch)
{
	u32 recording = recordings[epoch & 1];

	if (order->recording == recording)
		return;
	order->recording = recording;
	order->before = 0;
	order->highest = -1;
}

__hidden int station_add(struct cpu *cpu, u32 epoch, u32 id, u32 station, s64 value)
{
	u32 key = ((epoch & 1) * filter.cpus + id) * STATIONS + station;
	struct bank *bank = bpf_map_lookup_elem(&banks, &key);
	u64 index = fe_hist_index((u64)value, filter.k);
	int flags = 0;

	in_register(index);
	if (!cpu || !bank || station >= STATIONS || id >= filter.cpus)
		return 0;
	enter_recording(&cpu->orders[station], epoch);
	if (index >= filter.buckets || index >= FE_HIST_BUCKETS(BANK_BITS, BANK_K_MOST)) {
		count_lost(bank, &cpu->orders[station]);
		return 0;
	}
	bank->buckets[index]++;
	fe_stats_add(&bank->stats, value);
	count_rise(bank, &cpu->orders[station], coarse((u64)value, index));
	if (value > cpu->orders[station].highest) {
		cpu->orders[station].highest = value;
		flags = VALUE_MAXIMUM;
	}
	return filter.threshold_ns && (u64)value > filter.threshold_ns ? flags | VALUE_OVER : flags;
}
