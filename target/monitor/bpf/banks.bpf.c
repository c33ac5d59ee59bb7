/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting values: banks of histograms, one for each station, CPU and epoch, which user space maps. */
#include "programs.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct wanted wanted = {};

struct cpu_map cpus SEC(".maps");

fe_u32 recordings[2] = {}; /* which one each epoch belongs to, set by user space before the epoch begins */

/* Their size depends on k: it is set before they are made. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct bank));
} banks SEC(".maps");

/* To change the second waits until every program has ended that runs: nothing else is in them. */
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

/* One register, whose bounds the verifier follows: the compiler does not make it anew from what it came from. */
#define keep(VALUE) asm volatile("" : "+r"(VALUE))

static __always_inline void lose(struct bank *bank, struct order *order)
{
	bank->lost++;
	bank->gaps++;
	order->before = 0;
}

/* The bucket on the coarse scale, of a value and its bucket: where the value has its highest bit is in that one already. */
static __always_inline u64 coarse(u64 value, u64 index)
{
	u64 octave = index >> wanted.k, shift = octave + wanted.k - 1 - BANK_RISE_K;

	return octave ? (shift << BANK_RISE_K) + (value >> shift) : fe_hist_index(value, BANK_RISE_K);
}

/* How often values rise on a coarse scale, as the frame counts it for the values of probes. */
static __always_inline void follow(struct bank *bank, struct order *order, u64 bucket)
{
	u64 before = order->before;

	keep(bucket);
	order->before = (u32)bucket;
	if (bucket <= before || bucket + 1 > BANK_EDGES || before + 1 > BANK_EDGES)
		return;
	bank->rises[before + 1]++;
	bank->rises[bucket + 1]--;
}

/* The first value of a recording follows on none, and is a new maximum. */
static __always_inline void come_to(struct order *order, u32 epoch)
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
	u32 key = ((epoch & 1) * wanted.cpus + id) * STATIONS + station;
	struct bank *bank = bpf_map_lookup_elem(&banks, &key);
	u64 index = fe_hist_index((u64)value, wanted.k);
	int found = 0;

	keep(index);
	if (!cpu || !bank || station >= STATIONS || id >= wanted.cpus)
		return 0;
	come_to(&cpu->orders[station], epoch);
	if (index >= wanted.buckets || index >= FE_HIST_BUCKETS(BANK_BITS, BANK_K_MOST)) {
		lose(bank, &cpu->orders[station]);
		return 0;
	}
	bank->buckets[index]++;
	fe_stats_add(&bank->stats, value);
	follow(bank, &cpu->orders[station], coarse((u64)value, index));
	if (value > cpu->orders[station].highest) {
		cpu->orders[station].highest = value;
		found = FOUND_MAXIMUM;
	}
	return wanted.threshold_ns && (u64)value > wanted.threshold_ns ? found | FOUND_OVER : found;
}
