/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is the same on every platform with a real-time core beside Linux. */
#include "core_thread.h"

#include <errno.h>

static __thread int64_t forgiven;

int64_t thread_strays(void)
{
	int64_t told = core_thread_strays();

	return told < 0 ? told : told - forgiven;
}

void core_thread_forgive(int64_t strays)
{
	forgiven += thread_strays() - strays;
}

/* What /proc tells is how it sleeps with Linux. */
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
