/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bank: what a timed task in the kernel has counted since it was last asked, raw.
 *
 * The task fills one of two banks; each read() of the module's device makes it fill the other from one
 * instant on, and yields the bank filled up to that instant: struct fe_bank_head, then the buckets of its
 * series.  What each number means (names, units, the two events of a series) is known to whoever reads.
 * Writing FE_BANK_STOP stops the task, so that the next bank's counts since loading are final.
 *
 * Usable in kernel and user space: fixed widths, natural alignment, the machine's own byte order.
 */
#ifndef FE_BANK_H
#define FE_BANK_H

#include "fe_hist.h"

typedef __INT32_TYPE__ fe_s32;

#define FE_BANK_MAGIC 0x4b4e4246u
#define FE_BANK_VERSION 5u
#define FE_BANK_DEVICE "/dev/fastenough"
#define FE_BANK_STOP "stop"

#define FE_BANK_K 10 /* 1024 buckets per octave: at most 0.1 % wide */
/* Magnitudes 0 .. 2^63 - 1; buckets -(HALF - 1) .. HALF - 1, the negative ones for values below 0. */
#define FE_BANK_HALF ((fe_s32)FE_HIST_BUCKETS(63, FE_BANK_K))
#define FE_BANK_BUCKETS (2 * FE_BANK_HALF - 1)
/* Rises: how often values rose on a coarse scale, from edge 1 on; see the recording's `rises`. */
#define FE_BANK_RISE_K 3
#define FE_BANK_EDGES (FE_HIST_BUCKETS(63, FE_BANK_RISE_K) + 1)
#define FE_BANK_MAX_SERIES 2
/* The magnitudes of all values of a run come to no more than this together: no sum overflows. */
#define FE_BANK_SUM_MOST ((fe_u64)1 << 62)
#define FE_BANK_TEXT 64

enum fe_bank_task {
	FE_BANK_RESPONSE,
	FE_BANK_PERIODIC,
	FE_BANK_TIMER_HANDLER,
	FE_BANK_TIMER_THREAD,
	FE_BANK_SPIN,
	FE_BANK_PERIODIC_THREAD,
	FE_BANK_TASKS
};

enum fe_bank_kind {
	FE_BANK_ANSWER,           /* interrupt handler entered -> output written */
	FE_BANK_WAKEUP,           /* due time -> act began */
	FE_BANK_WAKEUP_CORRECTED, /* due time of each period -> the act that served it began */
	FE_BANK_GAP,              /* a reading of the clock with interrupts off -> the next one, less floor_ns */
};

enum fe_bank_counter {
	FE_BANK_SEEN,      /* interrupts */
	FE_BANK_ANSWERED,  /* of these: the output changed */
	FE_BANK_UNCHANGED, /* of these: two edges or more had become one interrupt */
	FE_BANK_TOGGLED,
	FE_BANK_WINDOWS,   /* in which the clock was read */
	FE_BANK_CORE_OVERRUNS, /* periods that a real-time core says were missed; what was missed the clock tells */
	FE_BANK_COUNTERS
};

/* What was requested of the kernel and what is in effect now, read back. */
enum fe_bank_setting {
	FE_BANK_POLICY,   /* SCHED_* of the thread */
	FE_BANK_PRIORITY, /* of the thread */
	FE_BANK_CPU,      /* of timer or thread; in effect: where its last act was */
	FE_BANK_IRQ,      /* number of the interrupt; never requested */
	FE_BANK_SETTINGS
};

/* What befell the thread that acts, since it was made. */
enum fe_bank_thread {
	FE_BANK_VOLUNTARY_SWITCHES,
	FE_BANK_INVOLUNTARY_SWITCHES,
	FE_BANK_MIGRATIONS,
	FE_BANK_THREAD_COUNTERS
};

#define FE_BANK_REQUESTED 1u
#define FE_BANK_IN_EFFECT 2u

struct fe_bank_value {
	fe_u32 known; /* FE_BANK_REQUESTED, FE_BANK_IN_EFFECT; 0: the task has no such setting */
	fe_s32 requested, in_effect;
};

/* min, max, max_at_ns and max_cpu mean something only if stats.count > 0. */
struct fe_bank_series {
	fe_u32 kind;    /* enum fe_bank_kind */
	fe_s32 max_cpu; /* where the greatest value was measured */
	struct fe_stats stats;
	fe_u64 lost;    /* values that were measured but not stored */
	fe_u64 missed;  /* periods in which no act took place */
	fe_u64 gaps;    /* places where lost values leave the order unknown */
	fe_s64 max_at_ns;
	fe_s32 first;   /* the buckets that follow are first .. first + buckets - 1 */
	fe_u32 buckets;
	fe_s32 rises[FE_BANK_EDGES + 1]; /* values below 0 count as 0 */
};

struct fe_bank_head {
	fe_u32 magic, version;
	fe_u32 bytes;        /* of head and buckets together */
	fe_u32 task;         /* enum fe_bank_task */
	fe_u32 series_count;
	fe_u32 counters;     /* bit n: the task counts enum fe_bank_counter n */
	fe_u32 stopped;      /* 1: the task was stopped, this bank is its last one that can hold anything */
	fe_u32 threaded;     /* 1: a thread acts; 0: an interrupt, to which nothing of thread_counters applies */
	fe_s64 begin_ns, end_ns; /* CLOCK_MONOTONIC; acts of begin_ns <= instant < end_ns are in this bank */
	fe_u64 period_ns;    /* 0: the task has none */
	fe_u64 width_ns, window_ns, floor_ns; /* of a task that spins; 0: it does not */
	fe_u64 counted[FE_BANK_COUNTERS];            /* in this bank */
	fe_u64 counted_since_load[FE_BANK_COUNTERS]; /* this bank included */
	fe_u64 thread_counters[FE_BANK_THREAD_COUNTERS]; /* as this bank was given, or as the task was stopped */
	fe_s32 in_line, out_line; /* -1: the task has none */
	struct fe_bank_value settings[FE_BANK_SETTINGS];
	char module_version[16];
	char implementation[16];     /* whose task it is, as recordings call it */
	char chip[FE_BANK_TEXT];     /* label of the GPIO chip, cut where it is longer */
	struct fe_bank_series series[FE_BANK_MAX_SERIES];
	/* fe_u32 buckets of series 0, then those of series 1 */
};

/* A read() must offer so much, for a bank can be had only once. */
#define FE_BANK_BYTES (sizeof(struct fe_bank_head) + FE_BANK_MAX_SERIES * FE_BANK_BUCKETS * sizeof(fe_u32))

_Static_assert(sizeof(struct fe_bank_series) == 2056, "padding differs between machines");
_Static_assert(sizeof(struct fe_bank_head) == 4464, "padding differs between machines");

#endif
