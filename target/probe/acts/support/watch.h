/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The watch: a thread, usually ordinary, beside the measuring ones, so that their acts need no time-outs.  It fails the run
 * if no act completes for too long, and at the end releases threads from calls that no signal interrupts.
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdatomic.h>

#include "frame.h"

struct watch {
	int64_t timeout_ns;
	int64_t period_ns;             /* of periodic acts, added to the time-out; else 0 */
	bool urgent;                   /* real-time, for members that may use all CPUs; their priority is one lower */
	void (*check)(struct run *run); /* a further check, called periodically; may be NULL */
	/* Releases the other members from calls that no signal interrupts, after one has left.  Called repeatedly until all
	 * have left; may be NULL. */
	void (*release)(void);
	void (*rescue)(void);          /* the same, if a member must be dead; may be NULL */
	void (*finish)(void);          /* the last call; may be NULL */
	_Atomic uint64_t progress;
	_Atomic int members;           /* threads that have not left yet */
};

#define TIMEOUT_OPTION(watch)                                                                                      \
	{"timeout", 0, OPTION_DURATION, &(watch).timeout_ns, .low = 100 * NS_PER_MS, .high = 60 * NS_PER_S,        \
	 .plain = NS_PER_S, .plain_name = "s", .help = "the run has failed when no act succeeds so long after it was due (2s)"}
#define TIMEOUT_STANDARD_NS (2 * NS_PER_S)

/* Adds the watching thread; .members is the number of threads that will call watch_leave(). */
void watch_add(struct run *run, struct watch *watch);

static inline void watch_progress(struct watch *watch)
{
	atomic_store_explicit(&watch->progress, atomic_load_explicit(&watch->progress, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* A member's last call. */
static inline void watch_leave(struct watch *watch)
{
	atomic_fetch_sub(&watch->members, 1);
}

#endif
