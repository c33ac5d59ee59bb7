/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough_oob.ko: the timed tasks out of band, scheduled by the EVL core; everything else is shared with fastenough.ko.
 *
 * core.c           the core EVL: its tasks and calls
 * interrupt.c      the interrupt of the input, out of band
 * timer_handler.c  a timer of the core
 * thread.c         a periodic kernel thread of the core
 */
#ifndef FASTENOUGH_OOB_H
#define FASTENOUGH_OOB_H

#include <evl/clock.h>

#include "fastenough.h"

/* Acts run with hardware interrupts off, from before their instant is read until they are recorded. */
static inline ktime_t fe_oob_now(void)
{
	return evl_ktime_monotonic();
}

/* Returns after all such acts have ended. */
void fe_oob_wait_for_acts(void);

#endif
