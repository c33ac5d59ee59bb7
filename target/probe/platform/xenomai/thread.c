/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of POSIX that the Cobalt core takes over when they are given a policy: from then on it schedules them. */
#define _GNU_SOURCE
#include <errno.h>

#include "cobalt.h"
#include "core_thread.h"
#include "posix_thread.h"

const char platform_name[] = "xenomai-user";

static const int core_policies[POLICIES] = {
	[POLICY_FIFO] = SCHED_FIFO, [POLICY_RR] = SCHED_RR, [POLICY_DEADLINE] = -1, [POLICY_OTHER] = SCHED_OTHER,
};

/* What waits for the core without priority is, to the core, of a class of its own. */
int thread_policy_of(int number)
{
	if (number == SCHED_WEAK)
		return POLICY_OTHER;
	for (int policy = 0; policy < POLICIES; policy++)
		if (core_policies[policy] == number)
			return policy;
	return POLICIES;
}

void thread_drop_capabilities(uint64_t mask)
{
	(void)mask;
}

void thread_request(const struct thread_request *request, struct thread_state *state)
{
	struct sched_param_ex parameters = {.sched_priority = request->priority};

	posix_thread_stay(request->cpu, state);
	state->policy_error = request->policy == POLICY_DEADLINE ? EOPNOTSUPP :
		pthread_setschedparam_ex(pthread_self(), core_policies[request->policy], &parameters);
}

void thread_read_back(struct thread_state *state)
{
	if (!thread_look(thread_id(), state)) {
		state->policy = -1;
		state->policy_unread = ESRCH;
	}
	state->timer_slack_ns = -1;
}

/* From the core: the state in Linux applies only while the thread runs in Linux. */
bool thread_look(pid_t thread, struct thread_state *state)
{
	struct sched_param_ex parameters;
	int policy;

	posix_thread_where(thread, state);
	if (sched_getscheduler_ex(thread, &policy, &parameters))
		return false;
	state->policy = thread_policy_of(policy);
	state->priority = parameters.sched_priority;
	return true;
}

void thread_demote(pid_t thread)
{
	sched_setscheduler_ex(thread, SCHED_OTHER, &(struct sched_param_ex){0});
}

/* A signal of Linux would first switch the thread to Linux, which counts as a mode switch. */
void thread_kick(pthread_t thread)
{
	__RT(pthread_kill(thread, SIGRELS));
}

int64_t core_thread_mode_switches(void)
{
	struct cobalt_threadstat status;

	return cobalt_thread_stat(0, &status) ? -1 : (int64_t)status.msw;
}
