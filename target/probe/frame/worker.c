/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A worker's thread: how it is made real-time, and what it reads back about itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run.h"

#define STACK_SIZE (256 * 1024)
#define STACK_LOCKED (64 * 1024) /* at its upper end, where it begins */

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

static struct sched_attributes attributes_asked(const struct worker *worker)
{
	const struct settings *settings = worker->run->settings;
	int policy = worker->spec.ordinary ? POLICY_OTHER : settings->policy;
	struct sched_attributes asked = {.size = sizeof(asked), .policy = (uint32_t)kernel_policies[policy]};

	if (policy == POLICY_DEADLINE) {
		asked.period_ns = (uint64_t)(worker->spec.period_ns ? worker->spec.period_ns : settings->interval_ns);
		asked.deadline_ns = settings->deadline_ns ? (uint64_t)settings->deadline_ns : asked.period_ns;
		asked.runtime_ns = settings->runtime_ns ? (uint64_t)settings->runtime_ns : asked.deadline_ns / 5;
	} else if (policy != POLICY_OTHER) {
		asked.priority = (uint32_t)worker->priority;
	}
	return asked;
}

/* Deadline tasks may not be pinned: the kernel admits them to all CPUs or refuses them. */
static bool pinned(const struct worker *worker)
{
	return worker->spec.cpu >= 0 && (worker->spec.ordinary || worker->run->settings->policy != POLICY_DEADLINE);
}

static void ask(struct worker *worker)
{
	struct sched_attributes asked = attributes_asked(worker);
	struct granted *granted = &worker->granted;
	cpu_set_t set;

	if (pinned(worker)) {
		CPU_ZERO(&set);
		CPU_SET(worker->spec.cpu, &set);
		granted->affinity_error = sched_setaffinity(0, sizeof(set), &set) ? errno : 0;
	}
	prctl(PR_SET_TIMERSLACK, (unsigned long)worker->run->settings->timer_slack_ns, 0, 0, 0);
	granted->policy_error = syscall(SYS_sched_setattr, 0, &asked, 0) ? errno : 0;
}

static int read_affinity(struct cpu_list *list)
{
	cpu_set_t set;

	list->count = 0;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set))
		return errno;
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			list->cpu[list->count++] = cpu;
	return 0;
}

static void read_back(struct granted *granted)
{
	struct sched_attributes attributes = {.size = sizeof(attributes)};

	granted->policy = -1;
	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0) {
		granted->policy = (int)attributes.policy;
		granted->priority = (int)attributes.priority;
		granted->runtime_ns = attributes.runtime_ns;
		granted->deadline_ns = attributes.deadline_ns;
		granted->period_ns = attributes.period_ns;
	} else {
		granted->policy_unread = errno;
	}
	granted->affinity_unread = read_affinity(&granted->affinity);
	granted->timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct run *run = worker->run;

	worker->tid = (pid_t)syscall(SYS_gettid);
	ask(worker);
	read_back(&worker->granted);
	if (atomic_fetch_add(&run->workers_ready, 1) + 1 == run->worker_count)
		pthread_kill(run->reporter, SIGUSR1);
	pthread_barrier_wait(&run->go);
	run_lay_start(run);
	run_await_start(run);
	if (run_going(worker))
		worker->spec.function(worker, worker->spec.argument);
	worker->ended_ns = mono_ns();
	read_back(&worker->kept);
	worker->migrations = machine_migrations(worker);
	worker->cpu_end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	atomic_store(&worker->done, true);
	if (atomic_fetch_add(&run->workers_done, 1) + 1 == run->worker_count)
		pthread_kill(run->reporter, SIGUSR1);
	return NULL;
}

void worker_start(struct worker *worker)
{
	pthread_attr_t attributes;
	int error;

	worker->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (worker->stack == MAP_FAILED)
		bad_input("no memory for the stack of a worker: %s; ask for fewer threads", strerror(errno));
	run_lock(worker->run, (char *)worker->stack + STACK_SIZE - STACK_LOCKED, STACK_LOCKED);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, worker->stack, STACK_SIZE);
	error = pthread_create(&worker->thread, &attributes, worker_main, worker);
	if (error)
		bad_input("cannot start a thread: %s; ask for fewer threads", strerror(error));
	pthread_attr_destroy(&attributes);
}

/* Wakes it from whatever it sleeps in. */
void worker_kick(struct worker *worker)
{
	if (!atomic_load(&worker->done))
		pthread_kill(worker->thread, SIGUSR2);
}
