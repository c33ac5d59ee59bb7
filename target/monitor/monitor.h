/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs in the kernel and the one that reads them share. */
#ifndef MONITOR_H
#define MONITOR_H

#include "fe_hist.h"

/* All stations, in the order of their list in stations/meson.build. */
enum station {
#define STATION(NAME, ...) STATION_##NAME,
#include "stations.inc"
#undef STATION
	STATIONS
};

/* Values of 2^40 ns (18 minutes) and more are lost, and counted as such. */
#define BANK_BITS 40
#define BANK_RISE_K 3
#define BANK_EDGES (FE_HIST_BUCKETS(BANK_BITS, BANK_RISE_K) + 1)
#define BANK_K_LEAST 4
#define BANK_K_MOST 10

/* What one station of one CPU counted in one epoch; as many buckets as its k needs. */
struct bank {
	struct fe_stats stats;
	fe_u64 lost;
	fe_u64 gaps; /* places where lost values leave the order unknown */
	__INT32_TYPE__ rises[BANK_EDGES + 1];
	fe_u32 buckets[FE_HIST_BUCKETS(BANK_BITS, BANK_K_MOST)];
};

#define BANK_BYTES(k) \
	((__builtin_offsetof(struct bank, buckets) + FE_HIST_BUCKETS(BANK_BITS, k) * sizeof(fe_u32) + 7) / 8 * 8)

enum origin { ORIGIN_TASK, ORIGIN_TIMER, ORIGIN_DEVICE, ORIGINS };

/* One wake-up of a task, CLOCK_MONOTONIC; 0: there was no such instant. */
struct wakeup {
	fe_u64 expiry_ns;    /* for which its timer was programmed */
	fe_u64 interrupt_ns; /* the timer's interrupt, or the handler of the device's began */
	fe_u64 runnable_ns, running_ns;
	fe_u64 return_ns;    /* to user space */
	fe_u32 origin;
	fe_u32 device;       /* its interrupt, where that was the origin */
	fe_u32 no_return;    /* it may have waited within a page fault: the next return that is told of is another */
};

#define COMM_SIZE 16
#define STACK_DEPTH 20

/* A task at an instant, and what the kernel did for it. */
struct context {
	char comm[COMM_SIZE];
	__INT32_TYPE__ pid, policy, prio;
	__INT32_TYPE__ stack_bytes; /* 0: not looked at */
	fe_u64 stack[STACK_DEPTH];
};

/* A task that had the CPU while another one waited for it. */
struct holder {
	fe_u64 until_ns;
	char comm[COMM_SIZE];
	__INT32_TYPE__ pid, policy, prio;
};

#define HOLDERS 8 /* a power of two */

enum interruption_kind { INTERRUPTION_NONE, INTERRUPTION_IRQ, INTERRUPTION_SOFTIRQ };

struct interruption {
	fe_u64 begin_ns, end_ns;
	fe_u32 kind, number;
};

#define RECENT 32 /* a power of two */

/* A wake-up by a timer, where all of them are kept. */
struct timer_sample {
	fe_u64 expiry_ns;
	fe_s64 values[STATIONS]; /* -1: none */
	fe_u64 cpu;
};

/* A wake-up in which a value was found that somebody wants to know more of. */
struct finding {
	struct wakeup wakeup;
	fe_u64 at_ns;               /* when it was counted */
	fe_u64 maxima, over;        /* bit n: the value of station n is a new maximum, or over the threshold */
	fe_s64 values[STATIONS];    /* -1: none */
	fe_u32 cpu;
	fe_u32 epoch;               /* in which it was counted */
	fe_u32 vector;              /* enum vector, of the last interrupt */
	fe_u32 frequency_khz;       /* 0: not known */
	fe_u32 idle_state;          /* that was left for it, and 1; 0: none */
	struct context task, interrupted, before, after; /* who had the CPU at the interrupt, before it ran, and took it away */
	struct interruption recent[RECENT];
	struct holder holders[HOLDERS];
};

/* Interrupts that are no device's; only x86 has events for them. */
#define VECTORS(V) V(local_timer) V(reschedule) V(call_function) V(call_function_single) V(irq_work) V(x86_platform_ipi) \
	V(thermal_apic) V(error_apic) V(spurious_apic)
enum vector {
	VECTOR_NONE,
#define VECTOR(NAME) VECTOR_##NAME,
	VECTORS(VECTOR)
#undef VECTOR
	VECTOR_DEVICE /* and from here on those of devices, by number */
};

enum policy_bit { BIT_OTHER = 1 << 0, BIT_FIFO = 1 << 1, BIT_RR = 1 << 2, BIT_DEADLINE = 1 << 6 }; /* 1 << SCHED_* */

/* Whose wake-ups are wanted, and how they are counted. */
struct wanted {
	fe_u32 policies;            /* of enum policy_bit */
	__INT32_TYPE__ prio_most;   /* as the kernel counts: less is more urgent */
	__INT32_TYPE__ pid;         /* a thread, or all of its process; 0: any */
	fe_u32 comm_size;           /* 0: any */
	char comm[COMM_SIZE];
	fe_u64 cgroup;              /* and all below it; 0: any */
	fe_u32 cgroup_level;
	fe_u32 k, buckets;
	fe_u32 cpus;                /* how many there are banks for */
	fe_u64 threshold_ns;
	fe_u32 keep;                /* every wake-up by a timer */
};

#endif
