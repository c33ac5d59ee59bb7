// SPDX-License-Identifier: GPL-2.0-or-later
/* The core Linux.  Acts run in interrupts or with preemption off, so they are RCU readers: none outlasts a grace period. */
#include <linux/rcupdate.h>

#include "fastenough.h"

static const struct fe_task *const tasks[] = {
	&fe_response, &fe_periodic, &fe_timer_handler, &fe_timer_thread, &fe_spin, NULL,
};

static void settle(void)
{
	synchronize_rcu();
}

const struct fe_core fe_core = {
	.implementation = "linux-kernel",
	.names = "response, periodic, timer-handler, timer-thread or spin",
	.tasks = tasks,
	.now = ktime_get,
	.settle = settle,
};
