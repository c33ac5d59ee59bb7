/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common to all platforms with a real-time core beside Linux. */
#include "core_thread.h"

#include <errno.h>

static __thread int64_t excluded_switches;

int64_t thread_mode_switches(void)
{
	int64_t switches = core_thread_mode_switches();

	return switches < 0 ? switches : switches - excluded_switches;
}

void core_thread_exclude_switches(int64_t before)
{
	excluded_switches += thread_mode_switches() - before;
}

/* /proc shows only how the thread sleeps with Linux. */
int thread_sleep_open(pid_t thread)
{
	(void)thread;
	errno = ENOSYS;
	return -1;
}

bool thread_sleeps(int fd)
{
	(void)fd;
	return false;
}
