/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough_rtdm.ko: the timed tasks as RTDM has them, scheduled by Xenomai's Cobalt core; all else is fastenough.ko's.
 *
 * core.c           the list of tasks, and what they need of the rest
 * interrupt.c      of the input, by RTDM
 * timer_handler.c  an RTDM timer
 * thread.c         a periodic RTDM task
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

#endif
