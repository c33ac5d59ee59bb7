/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ends a run from outside: signals, and the bounds that free a machine which a run has taken over. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "libc.h"
#include "run.h"

/* Time without the reporter running after which the watchdog ends the run, to free the machine. */
#define STARVED_S 30
/* A worker may compute this long without ever sleeping before the run is ended, and this long before the kernel
 * kills it, when there was time enough to write the end. */
#define RT_BOUND_S 3
#define RT_KILL_S 10

static struct run *watched; /* for signal handlers, which get no argument */
static sigset_t ending, awaited;
static int taken;
static int64_t first_taken_ns;

/* Does nothing but end a system call with EINTR. */
static void on_kick(int signal)
{
	(void)signal;
}

/* As ordinary threads they neither starve the reporter nor go on to the bound at which the kernel kills the process
 * before it has written its end. */
static void demote_workers(void)
{
	for_each_worker(worker, watched)
		if (worker->tid && !atomic_load(&worker->done))
			thread_demote(worker->tid);
}

/* A thread computed too long without sleeping, or the reporter was starved: free the machine. */
static void on_bound(int signal)
{
	static const char too_long[] = "a real-time thread computed too long without sleeping";
	static const char starved[] = "the reporting thread did not run, or its reader did not read, for half a minute";

	if (!atomic_exchange(&watched->reason_taken, true)) {
		memcpy(watched->reason, signal == SIGXCPU ? too_long : starved,
		       signal == SIGXCPU ? sizeof(too_long) : sizeof(starved));
		atomic_store(&watched->reason_written, true);
	}
	run_stop(watched, OUTCOME_FAILED);
	demote_workers();
	pthread_kill(watched->reporter, SIGUSR1);
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	sigemptyset(&action.sa_mask);
	sigaction(signal, &action, NULL);
}

/* nohup and background shells have these ignored, and ignored they stay. */
static void end_by_unless_ignored(int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(&ending, signal);
}

/* The reporter waits for these with sigtimedwait(); no other thread ever sees them. */
static void choose_awaited(void)
{
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	end_by_unless_ignored(SIGHUP);
	end_by_unless_ignored(SIGQUIT);
	awaited = ending;
	sigaddset(&awaited, SIGUSR1);
}

static void bound_real_time(void)
{
	struct rlimit limit = {RT_BOUND_S * 1000000, RT_KILL_S * 1000000};

	setrlimit(RLIMIT_RTTIME, &limit);
}

void signals_prepare(struct run *run)
{
	sigset_t blocked;

	watched = run;
	run->reporter = pthread_self();
	handle(SIGUSR2, on_kick);
	handle(SIGXCPU, on_bound);
	handle(SIGVTALRM, on_bound);
	handle(SIGPIPE, SIG_IGN);
	handle(SIGXFSZ, SIG_IGN);
	output_prepare();
	choose_awaited();
	blocked = awaited;
	sigaddset(&blocked, SIGALRM); /* timer methods wait for it */
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	bound_real_time();
}

/* The first signal determines the outcome; one after the end of the run only shortens its waits. */
static void take(int signal)
{
	if (!sigismember(&ending, signal))
		return;
	if (!taken++) {
		first_taken_ns = mono_ns();
		watched->signal = signal;
	}
	if (atomic_load(&watched->stop))
		return;
	if (signal == SIGINT && watched->settings->until_interrupt)
		run_stop(watched, OUTCOME_COMPLETED);
	else
		run_abort(watched, "ended by signal %s", signal_name(signal));
}

void signals_await(int64_t until_ns)
{
	int64_t left_ns = until_ns - mono_ns();
	struct timespec timeout = timespec_of(left_ns > 0 ? left_ns : 0);
	int signal = sigtimedwait(&awaited, NULL, &timeout);

	if (signal > 0)
		take(signal);
}

int signals_taken(int64_t *first_ns)
{
	static const struct timespec at_once;
	int signal;

	while ((signal = sigtimedwait(&awaited, NULL, &at_once)) > 0)
		take(signal);
	*first_ns = first_taken_ns;
	return taken;
}

timer_t watchdog_start(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
	timer_t watchdog;

	if (timer_create(CLOCK_MONOTONIC, &event, &watchdog))
		bad_input("cannot create the watchdog's timer: %s; raise ulimit -i", strerror(errno));
	return watchdog;
}

void watchdog_feed(timer_t watchdog, int64_t within_ns)
{
	struct itimerspec when = {.it_value = timespec_of(within_ns + STARVED_S * NS_PER_S)};

	timer_settime(watchdog, 0, &when, NULL);
}
