/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads, as every platform implements them (its thread.c): made real-time as requested, and what is then in
 * effect read back.  They are POSIX threads on all platforms; what makes one known to a real-time core belongs here.
 */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"

/* As the head of a recording names it: "linux-user". */
extern const char platform_name[];

/* Prepares the process for this platform; returns why this machine does not support it, or NULL.  Call it once, first. */
const char *platform_unavailable(void);

struct thread_request {
	int policy;   /* POLICY_* */
	int priority; /* 0 where the policy has none */
	int cpu;      /* to stay on; -1: any */
	uint64_t runtime_ns, deadline_ns, period_ns; /* POLICY_DEADLINE */
	int64_t timer_slack_ns;
};

/* What a thread reads back about itself. */
struct thread_state {
	int policy_error, affinity_error;   /* errno of the request, 0 if it was accepted */
	int policy_unread, affinity_unread; /* errno of reading back */
	int policy;                         /* POLICY_*; POLICIES: another one; -1: could not be read back */
	int priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
	struct cpu_list affinity;
	int64_t timer_slack_ns; /* -1: not known */
};

/* An errno.  The stack is the caller's. */
int thread_create(pthread_t *thread, void *stack, size_t size, void *(*begin)(void *), void *argument);

/* POLICY_* of the kernel's own number; POLICIES where it is another. */
int thread_policy_of(int number);

/* Of the calling thread. */
pid_t thread_id(void);
void thread_request(const struct thread_request *request, struct thread_state *state);
void thread_read_back(struct thread_state *state);

/* Drops all capabilities of the calling thread except those of a mask (bit N: capability N), for ever and for all programs
 * that it starts.  With a real-time core, which may need them in any call, nothing is dropped. */
void thread_drop_capabilities(uint64_t mask);

/* Mode switches of the calling thread from a real-time core to Linux so far; -1 without such a core, or if unknown. */
int64_t thread_mode_switches(void);

/* Reads the scheduling state of another thread of this process; false if the policy cannot be read. */
bool thread_look(pid_t thread, struct thread_state *state);
/* Makes it an ordinary thread; may be called in a signal handler. */
void thread_demote(pid_t thread);
/* Ends whatever it sleeps in. */
void thread_kick(pthread_t thread);

/* Opens the state of another thread, for thread_sleeps(); -1 with errno if it is not available. */
int thread_sleep_open(pid_t thread);
bool thread_sleeps(int fd);

#endif
