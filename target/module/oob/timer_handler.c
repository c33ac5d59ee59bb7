// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-handler: how late a handler of the core's timer runs.  The core keeps the grid, and skips what has passed. */
#include <evl/sched.h>
#include <evl/timer.h>

#include "oob.h"

static struct evl_timer timer;
static ktime_t due;

static void expire(struct evl_timer *expired)
{
	ktime_t now = fe_oob_now();

	due = ktime_add_ns(due, fe_grid_act(fe_recorder_filling(now), due, now) * fe_options.period_ns);
}

static int start(void)
{
	evl_init_timer_on_cpu(&timer, fe_cpu, expire);
	due = fe_grid_lay();
	evl_start_timer(&timer, due, ns_to_ktime(fe_options.period_ns));
	return 0;
}

static void stop(void)
{
	evl_destroy_timer(&timer);
	fe_oob_settle();
}

FE_TIMER_HANDLER(start, stop);
