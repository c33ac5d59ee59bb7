/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common to all platforms with a real-time core beside Linux. */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

#include "thread.h"

/* By the platform: mode switches of the calling thread from the core to Linux, as the core counts them; -1: unknown. */
int64_t core_thread_mode_switches(void);
/* Excludes mode switches that creating or closing an object requires: thread_mode_switches() returns `before`, its earlier
 * value, again. */
void core_thread_exclude_switches(int64_t before);

#endif
