/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By the calls of POSIX alone: no deadlines, no timer slack. */
#define _GNU_SOURCE
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

const char platform_name[] = "throwaway-user";

const char *platform_unavailable(void)
{
	return NULL;
}

static const int policies[POLICIES] = {
	[POLICY_FIFO] = SCHED_FIFO, [POLICY_RR] = SCHED_RR, [POLICY_DEADLINE] = -1, [POLICY_OTHER] = SCHED_OTHER,
};

int thread_policy_of(int number)
{
	for (int policy = 0; policy < POLICIES; policy++)
		if (policies[policy] == number)
			return policy;
	return POLICIES;
}

int thread_create(pthread_t *thread, void *stack, size_t size, void *(*begin)(void *), void *argument)
{
	(void)stack;
	(void)size;
	return pthread_create(thread, NULL, begin, argument);
}

pid_t thread_id(void)
{
	return gettid();
}

void thread_request(const struct thread_request *request, struct thread_state *state)
{
	struct sched_param parameters = {.sched_priority = request->priority};
	cpu_set_t set;

	CPU_ZERO(&set);
	if (request->cpu >= 0) {
		CPU_SET(request->cpu, &set);
		state->affinity_error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	}
	state->policy_error = pthread_setschedparam(pthread_self(), policies[request->policy], &parameters);
}

void thread_read_back(struct thread_state *state)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	state->affinity.count = 0;
	state->affinity_unread = pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			state->affinity.cpu[state->affinity.count++] = cpu;
	if (!thread_look(0, state))
		state->policy = -1;
	state->timer_slack_ns = -1;
}

bool thread_look(pid_t thread, struct thread_state *state)
{
	struct sched_param parameters;
	int kernel_policy = sched_getscheduler(thread);

	if (kernel_policy < 0 || sched_getparam(thread, &parameters))
		return false;
	state->policy = thread_policy_of(kernel_policy);
	state->priority = parameters.sched_priority;
	return true;
}

/* As many as it was asked; none at all where nobody asks. */
int64_t thread_mode_switches(void)
{
	static __thread int64_t asked;

	return getenv("THROWAWAY_STRAYS") ? asked++ : 0;
}

void thread_demote(pid_t thread)
{
	sched_setscheduler(thread, SCHED_OTHER, &(struct sched_param){0});
}

void thread_kick(pthread_t thread)
{
	pthread_kill(thread, SIGUSR2);
}

int thread_sleep_open(pid_t thread)
{
	(void)thread;
	errno = ENOSYS;
	return -1;
}

bool thread_sleeps(int fd)
{
	(void)fd;
	return false;
}

void thread_drop_capabilities(uint64_t mask)
{
	(void)mask;
}
