/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame of all acts in which one thread, the waker, wakes another one, the waiter.
 *
 * The waiter's priority is one higher, so that on the same CPU it preempts the waker at once.  Acts are numbered.  The
 * waker stores number and time directly before its waking call.  When the waiter's call has returned, the waiter reads the
 * clock and compares the number with the expected one.  They differ if the call returned for another reason than the
 * hand-over; that fails the run.
 */
#ifndef PAIR_H
#define PAIR_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "frame.h"
#include "waiting.h"
#include "placement.h"
#include "watch.h"

#define PAIR_INTERRUPTED INT64_MIN
#define PAIR_WRONG (INT64_MIN + 1) /* the call returned other data than was sent */

struct pair {
	uint64_t number;                /* of the current act, from 1 on; used by the waker only */
	_Atomic uint64_t armed;         /* number of the act for which the waiter is about to wait */
	_Alignas(64) _Atomic uint64_t sent;
	_Atomic int64_t sent_ns;
	_Alignas(64) _Atomic uint64_t done;
	_Atomic bool open;              /* the waker has begun */
	pthread_t waiter;
	pid_t waiter_tid;               /* set before armed */
	struct pace pace;               /* used by the waker only */
	int waiter_fd;                  /* of the waiter's state in /proc; used by the waker only */
};

/* One primitive. */
struct pair_act {
	const char *series, *from, *to;
	bool (*open)(struct run *run);       /* creates the primitive; false after run_not_applicable() */
	void (*begin)(void);                 /* in the waker, before the waiter waits for the first time; may be NULL */
	void (*wake_on)(struct worker *self, struct pair *pair); /* of PAIR_LOOPS */
	void (*wait_on)(struct worker *self, struct pair *pair);
	void (*end)(void);                   /* in the waker, after the last act; may be NULL */
	void (*release)(void);               /* in the watch: wakes the thread that still waits; may be NULL */
};

/* The options of every such probe. */
struct pair_choice {
	int placement;
	int64_t burst;
	struct watch watch;
};
extern struct pair_choice pair_choice;

#define PAIR_OPTIONS                                                                                               \
	PLACEMENT_OPTION(&pair_choice.placement, "same"),                                                          \
	{"burst", 0, OPTION_INTEGER, &pair_choice.burst, .low = 1, .high = 10000,                                  \
	 .help = "acts in a row per --interval (1)"},                                                              \
	TIMEOUT_OPTION(pair_choice.watch)

/* For probes without further options. */
extern const struct option_spec pair_options[];

void pair_setup(struct run *run, const struct pair_act *act);

/* For PAIR_LOOPS, before and after each act; false when the run ends. */
bool pair_next(struct worker *self, struct pair *pair);
bool pair_await_done(const struct worker *self, struct pair *pair);
bool pair_record(struct worker *self, struct pair *pair, uint64_t number, int64_t back_ns);

/*
 * Both loops, wake_on() and wait_on(), around an act's two functions, which are called directly:
 *
 *	void wake_waiter(struct pair *pair);      in the waker: pair_mark_sent(), then the waking call
 *	int64_t await_wake(uint64_t number);     in the waiter: wait; the time of coming back, or one of the two above
 */
#define PAIR_LOOPS(wake_waiter, await_wake)                                                                                     \
	static void wake_on(struct worker *self, struct pair *pair)                                                \
	{                                                                                                          \
		while (pair_next(self, pair)) {                                                                    \
			wake_waiter(pair);                                                                                \
			if (!pair_await_done(self, pair))                                                               \
				return;                                                                            \
		}                                                                                                  \
	}                                                                                                          \
	static void wait_on(struct worker *self, struct pair *pair)                                                \
	{                                                                                                          \
		uint64_t number = 1;                                                                               \
														   \
		while (run_is_active(self)) {                                                                          \
			int64_t back_ns;                                                                           \
														   \
			atomic_store_explicit(&pair->armed, number, memory_order_release);                         \
			back_ns = await_wake(number);                                                                    \
			if (back_ns == PAIR_INTERRUPTED)                                                           \
				continue;                                                                          \
			if (!pair_record(self, pair, number, back_ns))                                              \
				return;                                                                            \
			number++;                                                                                  \
		}                                                                                                  \
	}

static inline void pair_mark_sent(struct pair *pair)
{
	atomic_store_explicit(&pair->sent, pair->number, memory_order_relaxed);
	atomic_store_explicit(&pair->sent_ns, mono_ns(), memory_order_release);
}

/* For await_wake(): the time, unless the waiting call failed, which for those used here means EINTR. */
static inline int64_t pair_time(bool came_back)
{
	int64_t now_ns = mono_ns();

	return came_back ? now_ns : PAIR_INTERRUPTED;
}

/* The same where the call brings the number of the act with it. */
static inline int64_t pair_time_of(bool came_back, uint64_t brought, uint64_t number)
{
	int64_t back_ns = pair_time(came_back);

	return came_back && brought != number ? PAIR_WRONG : back_ns;
}

#endif
