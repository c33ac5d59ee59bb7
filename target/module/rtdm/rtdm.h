/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough_rtdm.ko: the timed tasks by RTDM, scheduled by Xenomai's Cobalt core; everything else is shared with
 * fastenough.ko.
 *
 * core.c           the core Cobalt: its tasks and calls
 * interrupt.c      the interrupt of the input, by RTDM
 * timer_handler.c  an RTDM timer
 * thread.c         a periodic RTDM task
 */
#ifndef FASTENOUGH_RTDM_H
#define FASTENOUGH_RTDM_H

#include <rtdm/driver.h>

#include "fastenough.h"

/* Acts hold this lock from before their instant is read until they are recorded: Linux does not know when acts end. */
extern rtdm_lock_t fe_acting;

static inline ktime_t fe_rtdm_now(void)
{
	return ns_to_ktime(rtdm_clock_read_monotonic());
}

#endif
