/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is noted of each wanted task. */
#ifndef TASK_H
#define TASK_H

#include "programs.h"

struct task {
	u32 pid;                  /* see tasks.h; 0: nobody's */
	/* the waker's, under the kernel's lock of the task's wake-ups */
	u64 woken;
	struct wakeup waking;
	u32 waking_knows;         /* KNOWS_INTERRUPTED, or nothing */
	u32 idle_state;           /* that the waker's CPU left, and 1; 0: none */
	/* of the CPU that the task is on */
	u64 taken;
	u32 state;
	u64 slept;                /* how often, by the kernel's own count, up to the sleep that was accounted for last; 0: not known */
	struct wakeup wakeup;
	u32 knows;                /* which of the contexts below are of this wake-up */
	u32 idle_left;
	struct context at_wakeup, before, after;
	struct context interrupted; /* the waker's, that at_wakeup is copied from */
};

struct finding_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};

extern struct finding_map findings SEC(".maps");

/* What is known of the wake-up that was taken: nothing, all but its return to user space, all. */
enum { NONE, RUNNING, OVER };
enum { KNOWS_INTERRUPTED = 1, KNOWS_BEFORE = 2, KNOWS_AFTER = 4 };

extern fe_u32 epoch;     /* counted up by user space */
extern fe_u32 counting;  /* 0 before and after a run */
extern fe_u64 untold;    /* findings for which there was no room */
extern fe_u64 unmatched; /* wake-ups of which one instant or the other was never seen */
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

/* What is told of a task: nothing where it is not known. */
static __always_inline void tell_context(struct context *context, const struct context *known)
{
	if (known) {
		*context = *known;
		return;
	}
	context->pid = -1;
	context->stack_bytes = 0;
}

/* The same, with the stack of the task that runs now. */
#define describe_current(context, task, ctx) do { \
	describe(context, task); \
	(context)->stack_bytes = (s32)bpf_get_stack(ctx, (context)->stack, sizeof((context)->stack), 0); \
} while (0)

/* Counts all values of the wake-up that was taken; who is a struct task_struct.  Noted is none then. */
__hidden int count(struct cpu *cpu, u32 id, struct task *task, const void *who);

#endif
