/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "sleep.h"

#include <errno.h>

#include "cobalt.h"
#include "thread.h"

int sleep_until(int64_t due_ns)
{
	struct timespec due = timespec_of(due_ns);

	return __RT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL));
}

int sleep_for(int64_t length_ns)
{
	struct timespec length = timespec_of(length_ns);

	return __RT(clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL));
}

/* Something else ended the waiting: where the clock alone says what is due, it is an act if the due time has passed. */
static int interrupted(const struct sleep *sleep, int error)
{
	return error == EINTR && clock_ns(sleep->clock) >= sleep->grid.due_ns ? 0 : error;
}

int sleep_begin_absolute(struct sleep *sleep)
{
	(void)sleep;
	return 0;
}

/* To sleep until what has passed would cost as much as a sleep, and more periods with it. */
int sleep_wait_absolute(struct sleep *sleep)
{
	struct timespec due = timespec_of(sleep->grid.due_ns);

	if (__builtin_expect(sleep->grid.due_ns <= sleep->begin_ns, 0))
		return 0;
	return interrupted(sleep, __RT(clock_nanosleep(sleep->clock, TIMER_ABSTIME, &due, NULL)));
}

void sleep_finish_absolute(struct sleep *sleep)
{
	(void)sleep;
}

int sleep_begin_relative(struct sleep *sleep)
{
	(void)sleep;
	return 0;
}

/* A relative sleep is due an interval after it began. */
int sleep_wait_relative(struct sleep *sleep)
{
	struct timespec interval = timespec_of(sleep->grid.period_ns);

	sleep->grid.due_ns = clock_ns(sleep->clock) + sleep->grid.period_ns;
	return interrupted(sleep, __RT(clock_nanosleep(sleep->clock, 0, &interval, NULL)));
}

void sleep_finish_relative(struct sleep *sleep)
{
	(void)sleep;
}

int sleep_begin_timerfd(struct sleep *sleep)
{
	struct itimerspec when = {timespec_of(sleep->grid.period_ns), timespec_of(sleep->grid.due_ns)};
	int64_t strays = thread_strays();

	sleep->fd = __RT(timerfd_create(sleep->clock, 0));
	thread_forgive(strays);
	if (sleep->fd < 0)
		return errno;
	return __RT(timerfd_settime(sleep->fd, TFD_TIMER_ABSTIME, &when, NULL)) ? errno : 0;
}

int sleep_wait_timerfd(struct sleep *sleep)
{
	uint64_t expiries = 0;
	ssize_t length = __RT(read(sleep->fd, &expiries, sizeof(expiries)));

	if (length < 0)
		return errno;
	if (length != sizeof(expiries) || expiries == 0)
		return EINTR;
	sleep->overruns = expiries - 1;
	return 0;
}

void sleep_finish_timerfd(struct sleep *sleep)
{
	int64_t strays = thread_strays();

	__RT(close(sleep->fd));
	thread_forgive(strays);
}
