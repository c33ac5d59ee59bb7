/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "sleep.h"

#include <errno.h>

#include "cobalt.h"
#include "core_thread.h"

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

SLEEP_WITHOUT_SETUP(absolute)
SLEEP_WITHOUT_SETUP(relative)

int sleep_wait_absolute(struct sleep *sleep)
{
	struct timespec due = timespec_of(sleep->grid.due_ns);

	if (sleep_due_already(sleep))
		return 0;
	return sleep_interrupted(sleep, __RT(clock_nanosleep(sleep->clock, TIMER_ABSTIME, &due, NULL)));
}

int sleep_wait_relative(struct sleep *sleep)
{
	struct timespec interval = timespec_of(sleep->grid.period_ns);

	if (sleep_late_already(sleep))
		return 0;
	return sleep_interrupted(sleep, __RT(clock_nanosleep(sleep->clock, 0, &interval, NULL)));
}

int sleep_begin_timerfd(struct sleep *sleep)
{
	struct itimerspec when = {timespec_of(sleep->grid.period_ns), timespec_of(sleep->grid.due_ns)};
	int64_t mode_switches = thread_mode_switches();

	sleep->fd = __RT(timerfd_create(sleep->clock, 0));
	core_thread_exclude_switches(mode_switches);
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
	int64_t mode_switches = thread_mode_switches();

	__RT(close(sleep->fd));
	core_thread_exclude_switches(mode_switches);
}
