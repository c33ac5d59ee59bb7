/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The periodic thread of a real-time core (its thread.c), for the tasks core_timer_thread.c and core_periodic.c. */
#ifndef FASTENOUGH_THREAD_H
#define FASTENOUGH_THREAD_H

#include "fastenough.h"

/* Starts the thread: at each due time it calls act (unless NULL) and records the wake-up, unless act returns false. */
int fe_thread_start(bool (*act)(struct fe_bank *bank));
void fe_thread_stop(void);
/* The counters of every such task. */
#define FE_THREAD_COUNTERS (1 << FE_BANK_CORE_OVERRUNS)
void fe_thread_settings(struct fe_bank_value settings[FE_BANK_SETTINGS]);

/*
 * core_wakeup.c, for thread.c: the first due time, where the core wakes its threads so much before they are due; and what the
 * thread does when it is woken, where no other act can be under way, after as many overruns as the core counted.
 */
ktime_t fe_wakeup_begin(bool (*act)(struct fe_bank *bank), s64 gravity_ns);
void fe_wakeup_handle(ktime_t now, unsigned long overruns);

#endif
