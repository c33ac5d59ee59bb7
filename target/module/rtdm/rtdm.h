/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough_rtdm.ko: the timed tasks as RTDM has them, scheduled by Xenomai's Cobalt core; all else is fastenough.ko's.
 *
 * core.c           the list of tasks, and what they need of the rest
 * response.c       an RTDM interrupt handler
 * timer_handler.c  an RTDM timer
 * thread.c         a periodic RTDM task, which these are: timer_thread.c  periodic.c
 */
#ifndef FASTENOUGH_RTDM_H
#define FASTENOUGH_RTDM_H

#include <rtdm/driver.h>

#include "fastenough.h"

/* Held by an act from before its instant is read until it is recorded: Linux cannot tell when acts have gone by. */
extern rtdm_lock_t fe_acting;

static inline ktime_t fe_rtdm_now(void)
{
	return ns_to_ktime(rtdm_clock_read_monotonic());
}

/* thread.c: at each due time calls act, which may be NULL, and records. */
int fe_thread_start(void (*act)(struct fe_bank *bank));
void fe_thread_stop(void);
void fe_thread_settings(struct fe_bank_value settings[FE_BANK_SETTINGS]);

#endif
