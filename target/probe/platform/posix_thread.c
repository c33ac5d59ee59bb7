/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common to all platforms whose threads are those of the C library. */
#define _GNU_SOURCE
#include "posix_thread.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

int thread_create(pthread_t *thread, void *stack, size_t size, void *(*begin)(void *), void *argument)
{
	pthread_attr_t attributes;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, size);
	error = pthread_create(thread, &attributes, begin, argument);
	pthread_attr_destroy(&attributes);
	return error;
}

pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

void posix_thread_stay(int cpu, struct thread_state *state)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	state->affinity_error = sched_setaffinity(0, sizeof(set), &set) ? errno : 0;
}

void posix_thread_where(pid_t thread, struct thread_state *state)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	state->affinity.count = 0;
	state->affinity_unread = sched_getaffinity(thread, sizeof(set), &set) ? errno : 0;
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			state->affinity.cpu[state->affinity.count++] = cpu;
}
