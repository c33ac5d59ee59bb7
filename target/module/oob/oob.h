/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough_oob.ko: the timed tasks out of band, scheduled by the EVL core; all else is fastenough.ko's.
 *
 * core.c           the list of tasks, and what they need of the rest
 * interrupt.c      of the input, out of band
 * timer_handler.c  a timer of the core's
 * thread.c         a periodic kernel thread of the core's
 */
#ifndef FASTENOUGH_OOB_H
#define FASTENOUGH_OOB_H

#include <evl/clock.h>

#include "fastenough.h"

/* An act is done with the processor's own interrupts off, from before its instant is read until it is recorded. */
static inline ktime_t fe_oob_now(void)
{
	return evl_ktime_monotonic();
}

/* Returns once no such act can be under way any more. */
void fe_oob_settle(void);

#endif
