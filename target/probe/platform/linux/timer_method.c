/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "timer_method.h"

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

#include "clock.h"
#include "periodic.h"

/* Two readings of the clock with one system call between them lie this close together, if nothing came between. */
#define CLOSE_NS (2 * NS_PER_US)

static int begin_nothing(struct sleep *sleep)
{
	(void)sleep;
	return 0;
}

static void finish_nothing(struct sleep *sleep)
{
	(void)sleep;
}

/* Where nobody but the clock tells what was missed. */
static uint64_t missed_by_clock(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_missed(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

/* Where the thread sleeps until a due time of its choice, and not at all when that has passed. */
static uint64_t missed_by_grid(const struct sleep *sleep, int64_t begin_ns)
{
	return fe_periods_over(sleep->grid.due_ns, begin_ns, sleep->grid.period_ns);
}

/* To sleep until what has passed would cost as much as a sleep, and more periods with it. */
static bool due_already(const struct sleep *sleep)
{
	return __builtin_expect(sleep->grid.due_ns <= sleep->begin_ns, 0);
}

/* Where the kernel keeps the grid, its count is the one that stays in step with its expiries. */
static uint64_t missed_by_kernel(const struct sleep *sleep, int64_t begin_ns)
{
	(void)begin_ns;
	return sleep->overruns;
}

/* A signal ended the waiting.  Where the clock alone says what is due, this is an act if the due time has passed. */
static int interrupted(const struct sleep *sleep, int error)
{
	return error == EINTR && clock_ns(sleep->clock) >= sleep->grid.due_ns ? 0 : error;
}

/* What a system call that returned -1 on failure came to. */
static int result_of(const struct sleep *sleep, long returned)
{
	return returned < 0 ? interrupted(sleep, errno) : 0;
}

/* A relative sleep is due an interval after it began. */
static struct timespec interval_from_now(struct sleep *sleep)
{
	sleep->grid.due_ns = clock_ns(sleep->clock) + sleep->grid.period_ns;
	return timespec_of(sleep->grid.period_ns);
}

/*
 * clock_nanosleep and nanosleep ------------------------------------------------------------------
 */

static int wait_absolute(struct sleep *sleep)
{
	struct timespec due = timespec_of(sleep->grid.due_ns);

	if (due_already(sleep))
		return 0;
	return interrupted(sleep, clock_nanosleep(sleep->clock, TIMER_ABSTIME, &due, NULL));
}

static int wait_relative(struct sleep *sleep)
{
	struct timespec interval = interval_from_now(sleep);

	return interrupted(sleep, clock_nanosleep(sleep->clock, 0, &interval, NULL));
}

/* The system call itself, where there is one: libc would turn it into clock_nanosleep. */
static int wait_nanosleep(struct sleep *sleep)
{
	struct timespec interval = interval_from_now(sleep);
#ifdef SYS_nanosleep
	struct {
		long s, ns;
	} kernel_interval = {(long)interval.tv_sec, interval.tv_nsec};

	return result_of(sleep, syscall(SYS_nanosleep, &kernel_interval, NULL));
#else
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

/* Anyone may send the signal, but only the timer's own says that a due time has come. */
static int wait_alarm(int code, siginfo_t *info)
{
	sigset_t set;

	alarm_set(&set);
	if (sigwaitinfo(&set, info) < 0)
		return errno;
	return info->si_code == code ? 0 : EINTR;
}

static int wait_posix_timer(struct sleep *sleep)
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

static int begin_posix_timer(struct sleep *sleep)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	struct itimerspec when = {timespec_of(sleep->grid.period_ns), timespec_of(sleep->grid.due_ns)};

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(sleep->clock, &event, &sleep->timer))
		return errno;
	return timer_settime(sleep->timer, TIMER_ABSTIME, &when, NULL) ? errno : 0;
}

static void finish_posix_timer(struct sleep *sleep)
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
static int begin_setitimer(struct sleep *sleep)
{
	for (int64_t close_ns = CLOSE_NS;; close_ns *= 2) {
		int64_t before_ns = clock_ns(sleep->clock);
		int64_t first_ns = fe_due_after(sleep->grid.due_ns, before_ns, sleep->grid.period_ns) - before_ns;
		int error;

		first_ns += NS_PER_US - first_ns % NS_PER_US;
		error = arm_setitimer(first_ns, sleep->grid.period_ns);
		if (error || clock_ns(sleep->clock) - before_ns <= close_ns) {
			sleep->grid.due_ns = before_ns + first_ns;
			return error;
		}
	}
}

/* An expiry between the wake-up and the reading of the clock was counted as missed: its signal must not count as
 * an early wake-up of the next period too.  Another's signal may have taken the place of our own. */
static int wait_setitimer(struct sleep *sleep)
{
	siginfo_t info;
	int error;

	do {
		error = interrupted(sleep, wait_alarm(SI_KERNEL, &info));
	} while (!error && clock_ns(sleep->clock) < sleep->grid.due_ns);
	return error;
}

static void finish_setitimer(struct sleep *sleep)
{
	struct itimerval never = {0};

	(void)sleep;
	setitimer(ITIMER_REAL, &never, NULL);
}

/*
 * timerfd ----------------------------------------------------------------------------------------
 */

static int begin_timerfd(struct sleep *sleep)
{
	struct itimerspec when = {timespec_of(sleep->grid.period_ns), timespec_of(sleep->grid.due_ns)};

	sleep->fd = timerfd_create(sleep->clock, TFD_CLOEXEC);
	if (sleep->fd < 0)
		return errno;
	return timerfd_settime(sleep->fd, TFD_TIMER_ABSTIME, &when, NULL) ? errno : 0;
}

static int wait_timerfd(struct sleep *sleep)
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

static void finish_timerfd(struct sleep *sleep)
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

static int wait_futex(struct sleep *sleep)
{
	int clock = sleep->clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;

	if (due_already(sleep))
		return 0;
	if (futex_wait(sleep, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | clock) && errno != ETIMEDOUT)
		return interrupted(sleep, errno);
	return 0;
}

static int wait_ppoll(struct sleep *sleep)
{
	struct timespec interval = interval_from_now(sleep);

	return result_of(sleep, ppoll(NULL, 0, &interval, NULL));
}

const struct timer_method timer_methods[METHODS] = {
	{"clock_nanosleep-abs", .begin = begin_nothing, .wait = wait_absolute, .missed = missed_by_grid,
	 .finish = finish_nothing},
	{"clock_nanosleep-rel", .relative = true, .begin = begin_nothing, .wait = wait_relative,
	 .missed = missed_by_clock, .finish = finish_nothing},
	{"nanosleep", .relative = true, .monotonic_only = true, .begin = begin_nothing, .wait = wait_nanosleep,
	 .missed = missed_by_clock, .finish = finish_nothing},
	{"posix-timer", .begin = begin_posix_timer, .wait = wait_posix_timer, .missed = missed_by_kernel,
	 .finish = finish_posix_timer},
	{"setitimer", .one_per_process = true, .monotonic_only = true, .whole_microseconds = true,
	 .begin = begin_setitimer, .wait = wait_setitimer, .missed = missed_by_clock, .finish = finish_setitimer},
	{"timerfd", .begin = begin_timerfd, .wait = wait_timerfd, .missed = missed_by_kernel, .finish = finish_timerfd},
	{"futex", .begin = begin_nothing, .wait = wait_futex, .missed = missed_by_grid, .finish = finish_nothing},
	{"ppoll", .relative = true, .monotonic_only = true, .begin = begin_nothing, .wait = wait_ppoll,
	 .missed = missed_by_clock, .finish = finish_nothing},
};

const char *const timer_method_names[METHODS + 1] = {
	"clock_nanosleep-abs", "clock_nanosleep-rel", "nanosleep", "posix-timer", "setitimer", "timerfd", "futex", "ppoll",
};
