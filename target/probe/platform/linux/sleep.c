/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "sleep.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libc.h"

/* Two readings of the clock with one system call between them lie this close together, if nothing came between. */
#define CLOSE_NS (2 * NS_PER_US)

SLEEP_WITHOUT_SETUP(absolute)
SLEEP_WITHOUT_SETUP(relative)
SLEEP_WITHOUT_SETUP(nanosleep)
SLEEP_WITHOUT_SETUP(futex)
SLEEP_WITHOUT_SETUP(ppoll)

/* The result of a system call that returns -1 on failure. */
static int result_of(const struct sleep *sleep, long returned)
{
	return returned < 0 ? sleep_interrupted(sleep, errno) : 0;
}

/*
 * clock_nanosleep and nanosleep ------------------------------------------------------------------
 */

int sleep_wait_absolute(struct sleep *sleep)
{
	struct timespec due = timespec_of(sleep->grid.due_ns);

	if (sleep_due_already(sleep))
		return 0;
	return sleep_interrupted(sleep, clock_nanosleep(sleep->clock, TIMER_ABSTIME, &due, NULL));
}

int sleep_wait_relative(struct sleep *sleep)
{
	struct timespec interval = timespec_of(sleep->grid.period_ns);

	if (sleep_late_already(sleep))
		return 0;
	return sleep_interrupted(sleep, clock_nanosleep(sleep->clock, 0, &interval, NULL));
}

/* The system call itself, where there is one: libc would turn it into clock_nanosleep. */
int sleep_wait_nanosleep(struct sleep *sleep)
{
	struct timespec interval = timespec_of(sleep->grid.period_ns);
#ifdef SYS_nanosleep
	struct {
		long s, ns;
	} kernel_interval = {(long)interval.tv_sec, interval.tv_nsec};

	if (sleep_late_already(sleep))
		return 0;
	return result_of(sleep, syscall(SYS_nanosleep, &kernel_interval, NULL));
#else
	if (sleep_late_already(sleep))
		return 0;
	return result_of(sleep, nanosleep(&interval, NULL));
#endif
}

/*
 * Signals: POSIX timer and setitimer ---------------------------------------------------------------
 */

static void alarm_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGALRM);
}

/* Any process may send the signal; only that of the timer marks a due time. */
static int wait_alarm(int code, siginfo_t *info)
{
	sigset_t set;

	alarm_set(&set);
	if (signal_wait(&set, info) < 0)
		return errno;
	return info->si_code == code ? 0 : EINTR;
}

int sleep_wait_posix_timer(struct sleep *sleep)
{
	siginfo_t info;
	int error = wait_alarm(SI_TIMER, &info);

	if (error)
		return error;
	if (info.si_overrun < 0)
		return EINTR; /* the clock was set back before this expiry, which is yet to come again */
	if (info.si_overrun == INT_MAX)
		return EOVERFLOW; /* the kernel counts no further */
	sleep->overruns = (uint64_t)info.si_overrun;
	return 0;
}

int sleep_begin_posix_timer(struct sleep *sleep)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	struct itimerspec when = {timespec_of(sleep->grid.period_ns), timespec_of(sleep->grid.due_ns)};

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(sleep->clock, &event, &sleep->timer))
		return errno;
	return timer_settime(sleep->timer, TIMER_ABSTIME, &when, NULL) ? errno : 0;
}

void sleep_finish_posix_timer(struct sleep *sleep)
{
	timer_delete(sleep->timer);
}

static int arm_setitimer(int64_t first_ns, int64_t period_ns)
{
	struct itimerval when = {
		.it_value = {first_ns / NS_PER_S, first_ns % NS_PER_S / NS_PER_US},
		.it_interval = {period_ns / NS_PER_S, period_ns % NS_PER_S / NS_PER_US},
	};

	return setitimer(ITIMER_REAL, &when, NULL) ? errno : 0;
}

/*
 * Its grid begins an even number of microseconds after it was armed, which happened between two readings of the
 * clock.  They must be close together: on a slow machine they never are as close as elsewhere.
 */
int sleep_begin_setitimer(struct sleep *sleep)
{
	for (int64_t close_ns = CLOSE_NS;; close_ns *= 2) {
		int64_t before_ns = clock_ns(sleep->clock);
		int64_t next_ns = fe_due_after(sleep->grid.due_ns, before_ns, sleep->grid.period_ns);
		int64_t first_ns = next_ns - before_ns;
		int error;

		first_ns += NS_PER_US - first_ns % NS_PER_US;
		error = arm_setitimer(first_ns, sleep->grid.period_ns);
		if (error || clock_ns(sleep->clock) - before_ns <= close_ns) {
			sleep->grid.due_ns += before_ns + first_ns - next_ns;
			return error;
		}
	}
}

/* An expiry between the wake-up and the reading of the clock was counted as missed: its signal must not count as
 * an early wake-up of the next period too.  Another's signal may have taken the place of our own. */
int sleep_wait_setitimer(struct sleep *sleep)
{
	siginfo_t info;
	int error;

	do {
		error = sleep_interrupted(sleep, wait_alarm(SI_KERNEL, &info));
	} while (!error && clock_ns(sleep->clock) < sleep->grid.due_ns);
	return error;
}

void sleep_finish_setitimer(struct sleep *sleep)
{
	struct itimerval never = {0};

	(void)sleep;
	setitimer(ITIMER_REAL, &never, NULL);
}

/*
 * timerfd ----------------------------------------------------------------------------------------
 */

int sleep_begin_timerfd(struct sleep *sleep)
{
	struct itimerspec when = {timespec_of(sleep->grid.period_ns), timespec_of(sleep->grid.due_ns)};

	sleep->fd = timerfd_create(sleep->clock, TFD_CLOEXEC);
	if (sleep->fd < 0)
		return errno;
	return timerfd_settime(sleep->fd, TFD_TIMER_ABSTIME, &when, NULL) ? errno : 0;
}

int sleep_wait_timerfd(struct sleep *sleep)
{
	uint64_t expiries = 0;
	ssize_t length = read(sleep->fd, &expiries, sizeof(expiries));

	if (length < 0)
		return errno;
	if (length == 0)
		return EINTR; /* the clock was set back before this expiry, which is yet to come again */
	sleep->overruns = expiries - 1;
	return 0;
}

void sleep_finish_timerfd(struct sleep *sleep)
{
	close(sleep->fd);
}

/*
 * Time-outs of calls that wait for something else ----------------------------------------------------
 */

static long futex_wait(struct sleep *sleep, int operation)
{
#if defined(SYS_futex_time64)
	struct {
		int64_t s, ns;
	} due = {sleep->grid.due_ns / NS_PER_S, sleep->grid.due_ns % NS_PER_S};
	struct {
		long s, ns;
	} old_due = {(long)due.s, (long)due.ns};
	long result = syscall(SYS_futex_time64, &sleep->word, operation, 0, &due, NULL, FUTEX_BITSET_MATCH_ANY);

	if (result == 0 || errno != ENOSYS)
		return result;
	return syscall(SYS_futex, &sleep->word, operation, 0, &old_due, NULL, FUTEX_BITSET_MATCH_ANY);
#else
	struct timespec due = timespec_of(sleep->grid.due_ns);

	return syscall(SYS_futex, &sleep->word, operation, 0, &due, NULL, FUTEX_BITSET_MATCH_ANY);
#endif
}

int sleep_wait_futex(struct sleep *sleep)
{
	int clock = sleep->clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;

	if (sleep_due_already(sleep))
		return 0;
	if (futex_wait(sleep, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | clock) && errno != ETIMEDOUT)
		return sleep_interrupted(sleep, errno);
	return 0;
}

int sleep_wait_ppoll(struct sleep *sleep)
{
	struct timespec interval = timespec_of(sleep->grid.period_ns);

	if (sleep_late_already(sleep))
		return 0;
	return result_of(sleep, ppoll(NULL, 0, &interval, NULL));
}
