// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-handler: latency of the handler of a timer of the core, which maintains the grid and skips missed periods. */
#include "rtdm.h"

static rtdm_timer_t timer;
static ktime_t due;

static void expire(rtdm_timer_t *expired)
{
	rtdm_lockctx_t context;
	ktime_t now;

	rtdm_lock_get_irqsave(&fe_acting, context);
	now = fe_rtdm_now();
	due = ktime_add_ns(due, fe_grid_act(fe_recorder_bank_at(now), due, now) * fe_options.period_ns);
	rtdm_lock_put_irqrestore(&fe_acting, context);
}

/* The core serves a new timer on its first CPU. */
static void choose_cpu(void)
{
	rtdm_lockctx_t context;

	cobalt_atomic_enter(context);
	xntimer_set_affinity(&timer, xnsched_struct(fe_cpu));
	cobalt_atomic_leave(context);
}

static int start(void)
{
	int error = rtdm_timer_init(&timer, expire, "fastenough");

	if (error)
		return error;
	choose_cpu();
	due = fe_grid_begin();
	error = rtdm_timer_start(&timer, ktime_to_ns(due), fe_options.period_ns, RTDM_TIMERMODE_ABSOLUTE);
	if (error)
		rtdm_timer_destroy(&timer);
	return error;
}

static void stop(void)
{
	rtdm_timer_destroy(&timer);
}

FE_TIMER_HANDLER(start, stop);
