/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record of each selected task. */
#ifndef TASK_H
#define TASK_H

#include "programs.h"

struct task {
	u32 pid;                  /* see tasks.h; 0: free */
	/* written by the waker, under the kernel's lock of the task's wake-ups */
	u64 woken;
	struct wakeup waking;
	u32 waking_knows;         /* KNOWS_INTERRUPTED, or nothing */
	u32 idle_state;           /* from which the waker's CPU woke, plus 1; 0: none */
	/* written by the CPU of the task */
	u64 taken;
	u32 state;
	u64 slept;                /* number of sleeps by the kernel's count, up to the last accounted one; 0: unknown */
	struct wakeup wakeup;
	u32 knows;                /* KNOWS_ bits of the contexts below that belong to this wake-up */
	u32 idle_left;
	struct context at_wakeup, before, after;
	u64 before_from_ns;       /* when `before` got the CPU */
	u32 cpu;                  /* on which the wake-up began to run */
	struct context interrupted; /* written by the waker; at_wakeup is a copy */
};

struct finding_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FINDINGS_BYTES);
};

extern struct finding_map findings SEC(".maps");

/* State of the current wake-up: none, without its return to user space, complete. */
enum { NONE, RUNNING, OVER };
enum { KNOWS_INTERRUPTED = 1, KNOWS_BEFORE = 2, KNOWS_AFTER = 4 };

extern fe_u32 epoch;     /* counted up by user space */
extern fe_u32 counting;  /* 0 before and after a run */
extern fe_u64 lost_findings;    /* findings for which there was no room */
extern fe_u64 unmatched; /* wake-ups with a missing instant */
extern fe_u64 dropped;   /* wake-ups for which there was no room */

static __always_inline void describe(struct context *context, const void *task_struct)
{
	const struct task_struct *task = task_struct;

	context->pid = BPF_CORE_READ(task, pid);
	context->policy = (s32)BPF_CORE_READ(task, policy);
	context->prio = BPF_CORE_READ(task, prio);
	bpf_probe_read_kernel(context->comm, sizeof(context->comm), __builtin_preserve_access_index(&task->comm));
	context->stack_bytes = 0;
}

/* Copies the context of a task; without one, the PID becomes -1. */
static __always_inline void copy_context(struct context *context, const struct context *known)
{
	if (known) {
		*context = *known;
		return;
	}
	context->pid = -1;
	context->stack_bytes = 0;
}

/* As describe(), with the stack of the running task. */
#define describe_current(context, task, ctx) do { \
	describe(context, task); \
	(context)->stack_bytes = (s32)bpf_get_stack(ctx, (context)->stack, sizeof((context)->stack), 0); \
} while (0)

/* Counts all values of the current wake-up and ends it; who is a struct task_struct. */
__hidden int count(struct cpu *cpu, u32 id, struct task *task, const void *who);

#endif
