/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A periodic timer that expires in hard interrupt context, also on PREEMPT_RT. */
#ifndef FASTENOUGH_TIMER_H
#define FASTENOUGH_TIMER_H

#include <linux/hrtimer.h>
#include <linux/smp.h>
#include <linux/version.h>

#include "fastenough.h"

#define FE_TIMER_MODE HRTIMER_MODE_ABS_PINNED_HARD

static inline void fe_timer_setup(struct hrtimer *timer, enum hrtimer_restart (*expire)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, expire, CLOCK_MONOTONIC, FE_TIMER_MODE);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, FE_TIMER_MODE);
	timer->function = expire;
#endif
}

static inline void fe_timer_arm(void *timer)
{
	hrtimer_start_expires(timer, FE_TIMER_MODE);
}

static inline int fe_timer_start(struct hrtimer *timer, enum hrtimer_restart (*expire)(struct hrtimer *))
{
	fe_timer_setup(timer, expire);
	hrtimer_set_expires(timer, fe_grid_begin());
	return smp_call_function_single(fe_cpu, fe_timer_arm, timer, 1);
}

static inline enum hrtimer_restart fe_timer_next(struct hrtimer *timer, struct fe_bank *bank, ktime_t now)
{
	ktime_t due = hrtimer_get_expires(timer);

	hrtimer_set_expires(timer, ktime_add_ns(due, fe_grid_act(bank, due, now) * fe_options.period_ns));
	return HRTIMER_RESTART;
}

#endif
