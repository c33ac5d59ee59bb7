/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by injector and BPF programs: order and result of one delay; times are CLOCK_MONOTONIC. */
#ifndef SPIN_H
#define SPIN_H

#define SPIN_TURNS (1u << 23) /* the kernel's maximum: 0.1 s or longer on every machine */

enum spin_place {
	SPIN_EXPIRY_TO_INTERRUPT,
	SPIN_INTERRUPT_TO_RUNNABLE,
	SPIN_RUNNABLE_TO_RUNNING,
	SPIN_RUNNING_TO_RETURN,
	SPIN_PLACES
};

struct spin_order {
	__u64 due_ns, size_ns;
	__u32 place, cpu;
};

/* All 0 before the order; end_ns is written last, and stays 0 where nothing was injected. */
struct spin_window {
	__u64 begin_ns, end_ns;
	__u32 runnable; /* the task was woken */
	__u32 expiring; /* the timer's handler runs, and has not yet woken a task */
	__s32 woken;    /* PID of the task that it woke */
};

#endif
