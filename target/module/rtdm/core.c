// SPDX-License-Identifier: GPL-2.0-or-later
/* The core Cobalt. */
#include <cobalt/kernel/init.h>

#include "rtdm.h"

DEFINE_RTDM_LOCK(fe_acting);

static const struct fe_task *const tasks[] = {
	&fe_response, &fe_periodic, &fe_timer_handler, &fe_timer_thread, NULL,
};

static void settle(void)
{
	rtdm_lockctx_t context;

	rtdm_lock_get_irqsave(&fe_acting, context);
	rtdm_lock_put_irqrestore(&fe_acting, context);
}

static int check(void)
{
	if (realtime_core_running())
		return 0;
	fe_refuse("the Cobalt core of this kernel is stopped: boot without xenomai.state=, or start it with corectl");
	return -ENOSYS;
}

const struct fe_core fe_core = {
	.implementation = "xenomai-kernel",
	.names = "response, periodic, timer-handler or timer-thread",
	.tasks = tasks,
	.now = fe_rtdm_now,
	.settle = settle,
	.check = check,
};
