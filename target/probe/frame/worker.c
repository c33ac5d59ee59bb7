/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A worker's thread: its stack, its requested settings, and its life in a run. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "run.h"

#define STACK_SIZE (256 * 1024)
#define STACK_LOCKED (64 * 1024) /* at its upper end, where it begins */

/* Deadline tasks may not be pinned: the kernel admits them to all CPUs or refuses them. */
static bool pinned(const struct worker *worker)
{
	return worker->spec.cpu >= 0 && (worker->spec.ordinary || worker->run->settings->policy != POLICY_DEADLINE);
}

static struct thread_request request_of(const struct worker *worker)
{
	const struct settings *settings = worker->run->settings;
	struct thread_request request = {
		.policy = worker->spec.ordinary ? POLICY_OTHER : settings->policy,
		.cpu = pinned(worker) ? worker->spec.cpu : -1,
		.timer_slack_ns = settings->timer_slack_ns,
	};

	if (request.policy == POLICY_DEADLINE) {
		request.period_ns = (uint64_t)(worker->spec.period_ns ? worker->spec.period_ns : settings->interval_ns);
		request.deadline_ns = settings->deadline_ns ? (uint64_t)settings->deadline_ns : request.period_ns;
		request.runtime_ns = settings->runtime_ns ? (uint64_t)settings->runtime_ns : request.deadline_ns / 5;
	} else if (request.policy != POLICY_OTHER) {
		request.priority = worker->priority;
	}
	return request;
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct run *run = worker->run;
	struct thread_request request = request_of(worker);

	worker->tid = thread_id();
	thread_request(&request, &worker->before);
	thread_read_back(&worker->before);
	thread_drop_capabilities(worker->spec.capabilities);
	if (atomic_fetch_add(&run->workers_ready, 1) + 1 == run->worker_count)
		pthread_kill(run->reporter, SIGUSR1);
	pthread_barrier_wait(&run->go);
	run_set_start(run);
	run_await_start(run);
	worker->mode_switches_before = thread_mode_switches();
	/* Called even if the run has ended: missed due times must be counted. */
	worker->spec.function(worker, worker->spec.argument);
	worker->mode_switches = thread_mode_switches();
	worker->ended_ns = mono_ns();
	thread_read_back(&worker->after);
	worker->migrations = machine_migrations(worker);
	worker->cpu_end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	atomic_store(&worker->done, true);
	if (atomic_fetch_add(&run->workers_done, 1) + 1 == run->worker_count)
		pthread_kill(run->reporter, SIGUSR1);
	return NULL;
}

void worker_start(struct worker *worker)
{
	int error;

	worker->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (worker->stack == MAP_FAILED)
		bad_input("no memory for the stack of a worker: %s; use fewer threads", strerror(errno));
	run_lock(worker->run, (char *)worker->stack + STACK_SIZE - STACK_LOCKED, STACK_LOCKED);
	error = thread_create(&worker->thread, worker->stack, STACK_SIZE, worker_main, worker);
	if (error)
		bad_input("cannot start a thread: %s; use fewer threads", strerror(error));
}

/* Interrupts its sleep or blocking call. */
void worker_kick(struct worker *worker)
{
	if (!atomic_load(&worker->done))
		thread_kick(worker->thread);
}
