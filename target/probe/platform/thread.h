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

/* Why this machine cannot run what this platform needs, NULL where it can; the process is made ready for it.  Once, before
 * all else that is here. */
const char *platform_absent(void);

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

/* Gives up the capabilities of the calling thread but for those of a mask (bit N: capability N), for good: it gets no other,
 * whatever it starts.  Where a real-time core may ask for them at any call nothing is given up. */
void thread_give_up_rights(uint64_t kept);

/* How often a real-time core lost the calling thread to Linux so far; -1 where there is no such core, or it does not tell. */
int64_t thread_strays(void);

/* Of another thread of this process: what decides when and where it runs.  False where the policy cannot be read. */
bool thread_look(pid_t thread, struct thread_state *state);
/* Makes it an ordinary thread; may be called in a signal handler. */
void thread_demote(pid_t thread);
/* Ends whatever it sleeps in. */
void thread_kick(pthread_t thread);

/* Whether another thread sleeps, so that it can be woken: opens what tells it, -1 with errno where nothing does. */
int thread_sleep_open(pid_t thread);
bool thread_sleeps(int fd);

#endif
