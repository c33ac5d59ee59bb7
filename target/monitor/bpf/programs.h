/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps that the BPF programs share, and the state of each CPU. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "kernel.h"
#include "monitor.h"

enum { HARD, SOFT }; /* where a timer's handler runs: in the interrupt, or in a soft-IRQ */

struct expiring {
	u64 timer; /* the timer whose handler runs; 0: none */
	s64 expiry_ns, interrupt_ns;
};

/* The interrupt of a device: begin of its handler (0: none), and its number. */
struct device {
	u64 ns, number;
};

enum { SOFTIRQS = 10 };

/* The worst times of wake-ups of one origin so far; contexts are recorded only for worse ones. */
struct worst {
	u64 late_ns, waited_ns, total_ns;
};

struct order {
	u32 before; /* coarse bucket of the last value, also of an earlier epoch */
	s64 highest;
	u32 recording; /* number of the recording to which both belong */
};

/* Members that every switch reads come first, to use few cache lines. */
struct cpu {
	u32 pid;      /* of the running task, if its switch was traced */
	u32 open;     /* the running task has a wake-up that is not yet counted */
	u32 awaits;   /* the running task has not yet returned to user space */
	u32 handling; /* handlers have set members below since the last switch */
	u32 busy;     /* a wake-up is being counted */
	u64 switched_ns; /* the last switch; 0: none traced */
	u64 irq_thread;                 /* the struct task_struct that serves `threaded`, until it sleeps */
	struct expiring expiring[2];
	u64 irq_ns, softirq_ns;         /* begin of the running interrupt handler, or soft-IRQ; 0: none */
	/* The device interrupt: of the running handler; that raised the running soft-IRQ; that woke irq_thread; the same while
	 * irq_thread runs; that raised each soft-IRQ. */
	struct device device, served, threaded, thread_serves, raised[SOFTIRQS];
	u32 vector;                     /* enum vector */
	u32 frequency_khz;
	u32 idle_state;                 /* the current or last one, plus 1; 0: unknown */
	u32 recent_count;
	struct interruption recent[RECENT];
	u32 holder_count;
	u64 unknown_until_ns; /* the tasks that had the CPU before are not in `holders` */
	struct holder holders[HOLDERS];
	u32 recording;                  /* number of the recording to which `worst` belongs */
	struct worst worst[ORIGINS];
	struct order orders[STATIONS];
	s64 values[STATIONS];           /* of the wake-up being counted; -1: none */
	u64 maxima, over;               /* bit n: the value of station n is a new maximum, or above the threshold */
};

struct cpu_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
};

extern struct cpu_map cpus SEC(".maps");
extern const volatile struct filter filter;
extern fe_u32 recordings[2];

static __always_inline struct cpu *cpu_state(u32 id)
{
	return bpf_map_lookup_elem(&cpus, &id);
}

static __always_inline struct cpu *this_cpu(void)
{
	return cpu_state(bpf_get_smp_processor_id());
}

/* Results of station_add(). */
#define VALUE_MAXIMUM 1
#define VALUE_OVER 2

/* Counts a value of a station in an epoch; returns VALUE_ flags.  Requires that no other program counts on this CPU. */
__hidden int station_add(struct cpu *cpu, u32 epoch, u32 id, u32 station, s64 value);

#endif
