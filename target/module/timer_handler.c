// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-handler: how late a bare timer handler runs. */
#include "fastenough.h"
#include "timer.h"

static struct hrtimer timer;

static enum hrtimer_restart expire(struct hrtimer *expired)
{
	return fe_timer_next(expired, fe_recorder_filling(), ktime_get());
}

static int start(void)
{
	return fe_timer_start(&timer, expire);
}

static void stop(void)
{
	hrtimer_cancel(&timer);
}

const struct fe_task fe_timer_handler = {
	.name = "timer-handler",
	.probe = "timer",
	.method = "timer-handler",
	.needs_period = true,
	.series = { &fe_wakeup, &fe_wakeup_owed },
	.start = start,
	.stop = stop,
};
