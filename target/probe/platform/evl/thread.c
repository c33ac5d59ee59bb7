/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of POSIX that are attached to the EVL core: from then on it schedules them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>

#include "core.h"
#include "core_thread.h"
#include "posix_thread.h"

#define MOST_THREADS (4 * MAX_CPUS)

const char platform_name[] = "evl-user";

/* The core knows threads by descriptors, the frame does not. */
static struct attached {
	pid_t id;
	pthread_t thread;
	int fd;
} attached[MOST_THREADS];
static _Atomic int attached_count;

/* What waits for the core without priority is, to the core, of a class of its own. */
int thread_policy_of(int number)
{
	switch (number) {
	case SCHED_FIFO:
		return POLICY_FIFO;
	case SCHED_RR:
		return POLICY_RR;
	case SCHED_OTHER:
	case SCHED_WEAK:
		return POLICY_OTHER;
	default:
		return POLICIES;
	}
}

/* An errno.  The library takes over what Linux has the thread do.  Others look through the table at any time: they are told
 * of an entry once it is filled in. */
static int attach(void)
{
	static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;
	int mine, fd = -EAGAIN;

	pthread_mutex_lock(&attaching);
	mine = atomic_load(&attached_count);
	if (mine < MOST_THREADS)
		fd = evl_attach_self("fastenough-%d", (int)thread_id());
	if (fd >= 0) {
		attached[mine] = (struct attached){thread_id(), pthread_self(), fd};
		atomic_store(&attached_count, mine + 1);
	}
	pthread_mutex_unlock(&attaching);
	return fd < 0 ? -fd : 0;
}

static int set_policy(const struct thread_request *request)
{
	struct sched_param parameters = {.sched_priority = request->priority};

	if (request->policy != POLICY_FIFO && request->policy != POLICY_OTHER)
		return EOPNOTSUPP;
	return pthread_setschedparam(pthread_self(), request->policy == POLICY_FIFO ? SCHED_FIFO : SCHED_OTHER, &parameters);
}

void thread_drop_capabilities(uint64_t mask)
{
	(void)mask;
}

void thread_request(const struct thread_request *request, struct thread_state *state)
{
	int error;

	posix_thread_stay(request->cpu, state);
	state->policy_error = set_policy(request);
	error = attach();
	if (!state->policy_error)
		state->policy_error = error;
}

static bool look(int fd, struct thread_state *state)
{
	struct evl_thread_state core_state;

	if (evl_get_state(fd, &core_state))
		return false;
	state->policy = thread_policy_of(core_state.eattrs.sched_policy);
	state->priority = core_state.eattrs.sched_priority;
	return true;
}

void thread_read_back(struct thread_state *state)
{
	posix_thread_where(0, state);
	if (!look(evl_get_self(), state)) {
		state->policy = -1;
		state->policy_unread = ESRCH;
	}
	state->timer_slack_ns = -1;
}

static int descriptor_of(pid_t id)
{
	for (int i = 0; i < atomic_load(&attached_count); i++)
		if (attached[i].id == id)
			return attached[i].fd;
	return -1;
}

/* From the core: the state in Linux applies only while the thread runs in Linux. */
bool thread_look(pid_t thread, struct thread_state *state)
{
	posix_thread_where(thread, state);
	return look(descriptor_of(thread), state);
}

void thread_demote(pid_t thread)
{
	evl_demote_thread(descriptor_of(thread));
}

/* A signal of Linux would first switch the thread to Linux, which counts as a mode switch. */
void thread_kick(pthread_t thread)
{
	for (int i = 0; i < atomic_load(&attached_count); i++)
		if (pthread_equal(attached[i].thread, thread))
			evl_unblock_thread(attached[i].fd);
}

int64_t core_thread_mode_switches(void)
{
	struct evl_thread_state core_state;

	return evl_get_state(evl_get_self(), &core_state) ? -1 : (int64_t)core_state.isw;
}
