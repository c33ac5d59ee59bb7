/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The periodic thread of a real-time core (its thread.c), which these tasks are: core_timer_thread.c  core_periodic.c */
#ifndef FASTENOUGH_THREAD_H
#define FASTENOUGH_THREAD_H

#include "fastenough.h"

/* At each due time calls act, which may be NULL, and records; not where act says that there was none. */
int fe_thread_start(bool (*act)(struct fe_bank *bank));
void fe_thread_stop(void);
/* Bits of what every such task counts. */
#define FE_THREAD_COUNTERS (1 << FE_BANK_CORE_OVERRUNS)
void fe_thread_settings(struct fe_bank_value settings[FE_BANK_SETTINGS]);

/*
 * core_turn.c, for thread.c: the first due time, where the core wakes its threads so much before they are due; and what the
 * thread does when it is woken, where no other act can be under way, after as many overruns as the core counted.
 */
ktime_t fe_turn_first(bool (*act)(struct fe_bank *bank), s64 gravity_ns);
void fe_turn(ktime_t now, unsigned long overruns);

#endif
