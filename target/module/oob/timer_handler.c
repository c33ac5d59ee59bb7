// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-handler: latency of the handler of a timer of the core, which maintains the grid and skips missed periods. */
#include <evl/sched.h>
#include <evl/timer.h>

#include "oob.h"

static struct evl_timer timer;
static ktime_t due;

static void expire(struct evl_timer *expired)
{
	ktime_t now = fe_oob_now();

	due = ktime_add_ns(due, fe_grid_act(fe_recorder_bank_at(now), due, now) * fe_options.period_ns);
}

static int start(void)
{
	evl_init_timer_on_cpu(&timer, fe_cpu, expire);
	due = fe_grid_begin();
	evl_start_timer(&timer, due, ns_to_ktime(fe_options.period_ns));
	return 0;
}

static void stop(void)
{
	evl_destroy_timer(&timer);
	fe_oob_wait_for_acts();
}

FE_TIMER_HANDLER(start, stop);
