// SPDX-License-Identifier: GPL-2.0-or-later
/* The core EVL. */
#include <linux/smp.h>
#include <evl/control.h>

#include "oob.h"

static const struct fe_task *const tasks[] = {
	&fe_response, &fe_periodic, &fe_timer_handler, &fe_timer_thread, NULL,
};

/* Each CPU handles this call after its out-of-band work, so acts with interrupts off have ended. */
void fe_oob_wait_for_acts(void)
{
	kick_all_cpus_sync();
}

static int check(void)
{
	if (evl_is_running())
		return 0;
	fe_refuse("the EVL core of this kernel is stopped: boot without evl.state=, or start it with evl start");
	return -ENOSYS;
}

const struct fe_core fe_core = {
	.implementation = "evl-kernel",
	.names = "response, periodic, timer-handler or timer-thread",
	.tasks = tasks,
	.now = fe_oob_now,
	.settle = fe_oob_wait_for_acts,
	.check = check,
};
