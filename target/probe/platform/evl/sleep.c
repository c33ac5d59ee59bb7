/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "sleep.h"

#include <errno.h>
#include <unistd.h>

#include "core.h"
#include "core_thread.h"

/* The library has negative numbers for the clocks of Linux. */
static int core_clock(clockid_t clock)
{
	return -(int)clock;
}

static int sleep_by(clockid_t clock, int64_t due_ns)
{
	struct timespec due = timespec_of(due_ns);

	return -evl_sleep_until(core_clock(clock), &due);
}

int sleep_until(int64_t due_ns)
{
	return sleep_by(CLOCK_MONOTONIC, due_ns);
}

int sleep_for(int64_t length_ns)
{
	return sleep_until(mono_ns() + length_ns);
}

SLEEP_WITHOUT_SETUP(absolute)

int sleep_wait_absolute(struct sleep *sleep)
{
	if (sleep_due_already(sleep))
		return 0;
	return sleep_interrupted(sleep, sleep_by(sleep->clock, sleep->grid.due_ns));
}

int sleep_begin_timer(struct sleep *sleep)
{
	struct itimerspec when = {timespec_of(sleep->grid.period_ns), timespec_of(sleep->grid.due_ns)};
	int64_t mode_switches = thread_mode_switches();

	sleep->fd = evl_new_timer(core_clock(sleep->clock));
	core_thread_exclude_switches(mode_switches);
	return sleep->fd < 0 ? -sleep->fd : -evl_set_timer(sleep->fd, &when, NULL);
}

/* An expiry of a due time that was skipped as missed is no act; the core may be a little early, never that much. */
static bool is_past_expiry(const struct sleep *sleep)
{
	return sleep->grid.due_ns - clock_ns(sleep->clock) > sleep->grid.period_ns / 2;
}

int sleep_wait_timer(struct sleep *sleep)
{
	uint64_t ticks;
	ssize_t length = oob_read(sleep->fd, &ticks, sizeof(ticks));

	if (length < 0)
		return errno;
	return length != sizeof(ticks) || is_past_expiry(sleep) ? EINTR : 0;
}

void sleep_finish_timer(struct sleep *sleep)
{
	int64_t mode_switches = thread_mode_switches();

	close(sleep->fd);
	core_thread_exclude_switches(mode_switches);
}
