/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread is scheduled as the kernel's sched_setattr() takes it, and as sched_getattr() says. */
#define _GNU_SOURCE
#include "posix_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SCHED_DEADLINE /* libc headers may lack it */
#define SCHED_DEADLINE 6
#endif
#define STATE_SIZE 64 /* of /proc: number, name and state stand at the beginning */

const char platform_name[] = "linux-user";

const char *platform_unavailable(void)
{
	return NULL;
}

/* The kernel's struct sched_attr in its first version; libc headers have none. */
struct sched_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static const int kernel_policies[POLICIES] = {
	[POLICY_FIFO] = SCHED_FIFO,
	[POLICY_RR] = SCHED_RR,
	[POLICY_DEADLINE] = SCHED_DEADLINE,
	[POLICY_OTHER] = SCHED_OTHER,
};

int thread_policy_of(int number)
{
	for (int policy = 0; policy < POLICIES; policy++)
		if (kernel_policies[policy] == number)
			return policy;
	return POLICIES;
}

void thread_request(const struct thread_request *request, struct thread_state *state)
{
	struct sched_attributes attributes = {
		.size = sizeof(attributes), .policy = (uint32_t)kernel_policies[request->policy],
		.priority = (uint32_t)request->priority, .runtime_ns = request->runtime_ns,
		.deadline_ns = request->deadline_ns, .period_ns = request->period_ns,
	};

	posix_thread_stay(request->cpu, state);
	prctl(PR_SET_TIMERSLACK, (unsigned long)request->timer_slack_ns, 0, 0, 0);
	state->policy_error = syscall(SYS_sched_setattr, 0, &attributes, 0) ? errno : 0;
}

/* The capabilities in effect, each 32 of them in a word as the kernel has it; false where it does not say. */
static bool read_capabilities(struct __user_cap_header_struct *header, struct __user_cap_data_struct *rights)
{
	*header = (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
	return !syscall(SYS_capget, header, rights);
}

void thread_drop_capabilities(uint64_t mask)
{
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3];

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!read_capabilities(&header, rights))
		return;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		rights[i].permitted &= (uint32_t)(mask >> (32 * i));
		rights[i].effective &= rights[i].permitted;
		rights[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, rights);
}

bool thread_look(pid_t thread, struct thread_state *state)
{
	struct sched_attributes attributes = {.size = sizeof(attributes)};

	posix_thread_where(thread, state);
	if (syscall(SYS_sched_getattr, thread, &attributes, sizeof(attributes), 0)) {
		state->policy = -1;
		state->policy_unread = errno;
		return false;
	}
	state->policy = thread_policy_of((int)attributes.policy);
	state->priority = (int)attributes.priority;
	state->runtime_ns = attributes.runtime_ns;
	state->deadline_ns = attributes.deadline_ns;
	state->period_ns = attributes.period_ns;
	return true;
}

void thread_read_back(struct thread_state *state)
{
	thread_look(0, state);
	state->timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

int64_t thread_mode_switches(void)
{
	return -1;
}

void thread_demote(pid_t thread)
{
	static const struct sched_param ordinary;

	sched_setscheduler(thread, SCHED_OTHER, &ordinary);
}

void thread_kick(pthread_t thread)
{
	pthread_kill(thread, SIGUSR2);
}

int thread_sleep_open(pid_t thread)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool thread_sleeps(int fd)
{
	char text[STATE_SIZE];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	const char *name_end;

	if (length <= 0)
		return false;
	text[length] = '\0';
	name_end = strrchr(text, ')');
	return name_end && !strncmp(name_end, ") S", 3);
}
