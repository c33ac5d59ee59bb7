// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-handler: latency of a timer's handler in the interrupt. */
#include "fastenough.h"
#include "timer.h"

static struct hrtimer timer;

static enum hrtimer_restart expire(struct hrtimer *expired)
{
	ktime_t now = ktime_get();

	return fe_timer_next(expired, fe_recorder_bank_at(now), now);
}

static int start(void)
{
	return fe_timer_start(&timer, expire);
}

static void account(void *unused)
{
	ktime_t now = ktime_get();

	if (!ktime_before(now, hrtimer_get_expires(&timer)))
		fe_timer_next(&timer, fe_recorder_bank_at(now), now);
}

/* Accounts for an expiry that is due but did not run, because its CPU had interrupts off. */
static void stop(void)
{
	hrtimer_cancel(&timer);
	smp_call_function_single(fe_cpu, account, NULL, 1);
}

FE_TIMER_HANDLER(start, stop);
