/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Types shared by the BPF programs in the kernel and the monitor in user space. */
#ifndef MONITOR_H
#define MONITOR_H

#include "fe_hist.h"

/* All stations, in the order of stations/meson.build. */
enum station {
#define STATION(NAME, ...) STATION_##NAME,
#include "stations.inc"
#undef STATION
	STATIONS
};

/* Values of 2^40 ns (18 minutes) and more count as lost. */
#define BANK_BITS 40
#define BANK_RISE_K 3
#define BANK_EDGES (FE_HIST_BUCKETS(BANK_BITS, BANK_RISE_K) + 1)
#define BANK_K_LEAST 4
#define BANK_K_MOST 10

/* The counts of one station on one CPU in one epoch; the number of buckets depends on k. */
struct bank {
	struct fe_stats stats;
	fe_u64 lost;
	fe_u64 gaps; /* breaks in the order of values, because of lost ones */
	__INT32_TYPE__ rises[BANK_EDGES + 1];
	fe_u32 buckets[FE_HIST_BUCKETS(BANK_BITS, BANK_K_MOST)];
};

#define BANK_BYTES(k) \
	((__builtin_offsetof(struct bank, buckets) + FE_HIST_BUCKETS(BANK_BITS, k) * sizeof(fe_u32) + 7) / 8 * 8)

enum origin { ORIGIN_TASK, ORIGIN_TIMER, ORIGIN_DEVICE, ORIGINS };

/* The instants of a wake-up of a task, CLOCK_MONOTONIC; 0: none. */
struct wakeup {
	fe_u64 expiry_ns;    /* programmed expiry of its timer */
	fe_u64 interrupt_ns; /* begin of the timer's interrupt, or of the device's handler */
	fe_u64 runnable_ns, running_ns;
	fe_u64 return_ns;    /* to user space */
	fe_u32 origin;
	fe_u32 device;       /* interrupt number, if the origin is a device */
	fe_u32 no_return;    /* the task may have waited in a page fault, so the next sys_exit is not its return */
};

#define COMM_SIZE 16
#define STACK_DEPTH 20

/* A task at an instant, with its kernel stack. */
struct context {
	char comm[COMM_SIZE];
	__INT32_TYPE__ pid, policy, prio;
	__INT32_TYPE__ stack_bytes; /* 0: not recorded */
	fe_u64 stack[STACK_DEPTH];
};

/* A task that had the CPU. */
struct holder {
	fe_u64 from_ns, until_ns;
	char comm[COMM_SIZE];
	__INT32_TYPE__ pid, policy, prio;
};

#define HOLDERS 16 /* a power of two */
#define HOLDER_LEAST_NS 20000 /* tasks that had the CPU for less are not recorded */

enum interruption_kind { INTERRUPTION_NONE, INTERRUPTION_IRQ, INTERRUPTION_SOFTIRQ };

struct interruption {
	fe_u64 begin_ns, end_ns;
	fe_u32 kind, number;
};

#define RECENT 32 /* a power of two */

/* A wake-up by a timer, for --samples. */
struct timer_sample {
	fe_u64 expiry_ns;
	fe_s64 values[STATIONS]; /* -1: none */
	fe_u64 cpu;
};

/* A wake-up with a new maximum, or with a value above the threshold. */
struct finding {
	struct wakeup wakeup;
	fe_u64 at_ns;               /* when it was counted */
	fe_u64 maxima, over;        /* bit n: the value of station n is a new maximum, or above the threshold */
	fe_s64 values[STATIONS];    /* -1: none */
	fe_u32 cpu;
	fe_u32 epoch;               /* in which it was counted */
	fe_u32 vector;              /* enum vector, of the last interrupt */
	fe_u32 frequency_khz;       /* 0: unknown */
	fe_u32 idle_state;          /* from which the CPU woke, plus 1; 0: none */
	struct context task, interrupted, before, after; /* the woken task; tasks on the CPU at the interrupt, before, after it */
	struct interruption recent[RECENT];
	fe_u64 before_from_ns;      /* when `before` got the CPU */
	fe_u64 unknown_until_ns;    /* holders before this instant are not in `holders` */
	struct holder holders[HOLDERS];
};

#define FINDINGS_BYTES (1 << 20) /* of the ring buffer of findings; a power of two */

/* Interrupts without a device; only x86 has events for them. */
#define VECTORS(V) V(local_timer) V(reschedule) V(call_function) V(call_function_single) V(irq_work) V(x86_platform_ipi) \
	V(thermal_apic) V(error_apic) V(spurious_apic)
enum vector {
	VECTOR_NONE,
#define VECTOR(NAME) VECTOR_##NAME,
	VECTORS(VECTOR)
#undef VECTOR
	VECTOR_DEVICE /* plus the number of a device interrupt */
};

enum policy_bit { BIT_OTHER = 1 << 0, BIT_FIFO = 1 << 1, BIT_RR = 1 << 2, BIT_DEADLINE = 1 << 6 }; /* 1 << SCHED_* */

/* Selection of the monitored tasks, and parameters of the counting. */
struct filter {
	fe_u32 policies;            /* of enum policy_bit */
	__INT32_TYPE__ prio_most;   /* kernel priority: lower is more urgent */
	__INT32_TYPE__ pid;         /* of a thread or process; 0: any */
	fe_u32 comm_size;           /* 0: any */
	char comm[COMM_SIZE];
	fe_u64 cgroup;              /* ID of a group, including those below it; 0: any */
	fe_u32 cgroup_level;
	fe_u32 k, buckets;
	fe_u32 cpus;                /* number of CPUs with banks */
	fe_u64 threshold_ns;
	fe_u32 store_samples;       /* every wake-up by a timer */
};

#endif
