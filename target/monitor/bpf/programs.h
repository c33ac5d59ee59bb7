/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of programs share: the maps, and the state of each CPU. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "kernel.h"
#include "monitor.h"

enum { HARD, SOFT }; /* where a timer's handler runs: in the interrupt, or in a soft-IRQ */

struct expiring {
	u64 timer; /* whose handler runs now; 0: none */
	s64 expiry_ns, interrupt_ns;
};

/* The interrupt of a device, by when its handler began; 0: none. */
struct device {
	u64 ns, number;
};

enum { SOFTIRQS = 10 };

/* The worst so far of wake-ups of one origin: only worse ones are looked at closely. */
struct worst {
	u64 late_ns, waited_ns, total_ns;
};

struct order {
	u32 before; /* coarse bucket of the last value; outlasts epochs */
	s64 highest;
	u32 recording; /* that both are of: nothing before it counts */
};

/* What each switch of anybody looks at comes first: the less of the CPU's cache that is, the less it costs. */
struct cpu {
	u32 pid;      /* of the task that runs, as far as its switch was seen */
	u32 open;     /* the task that runs has a wake-up that is not counted yet */
	u32 awaits;   /* and it has not returned to user space yet */
	u32 waiting;  /* a wanted task was made runnable for this CPU, and none has run since */
	u32 handling; /* what handlers noted since the last switch is not forgotten yet */
	u32 busy;     /* a wake-up is being counted */
	u64 irq_thread;                 /* a struct task_struct: see threaded; until it sleeps */
	struct expiring expiring[2];
	u64 irq_ns, softirq_ns;         /* when the handler of an interrupt, or a soft-IRQ, began that runs; 0: none */
	/* Of the handler that runs, that raised the soft-IRQ that runs, that woke its thread, the same if it is that thread that
	 * runs, and that raised each soft-IRQ. */
	struct device device, served, threaded, thread_serves, raised[SOFTIRQS];
	u32 vector;                     /* enum vector */
	u32 frequency_khz;
	u32 idle_state;                 /* that the CPU is in or left last, and 1; 0: none was seen */
	u32 recent_count;
	struct interruption recent[RECENT];
	u32 holder_count;
	struct holder holders[HOLDERS];
	u32 recording;                  /* that these are of */
	struct worst worst[ORIGINS];
	struct order orders[STATIONS];
	s64 values[STATIONS];           /* of the wake-up that is counted; -1: none */
	u64 maxima, over;               /* bit n: that of station n is a new maximum, or over the threshold */
};

struct cpu_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
};

extern struct cpu_map cpus SEC(".maps");
extern const volatile struct wanted wanted;
extern fe_u32 recordings[2];

static __always_inline struct cpu *cpu_state(u32 id)
{
	return bpf_map_lookup_elem(&cpus, &id);
}

static __always_inline struct cpu *this_cpu(void)
{
	return cpu_state(bpf_get_smp_processor_id());
}

#define FOUND_MAXIMUM 1
#define FOUND_OVER 2

/* Counts a value of a station in an epoch: interrupts must be off, or no other program count on this CPU meanwhile. */
__hidden int station_add(struct cpu *cpu, u32 epoch, u32 id, u32 station, s64 value);

#endif
