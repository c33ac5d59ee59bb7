// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-thread: wake-up latency of a periodic thread of the core. */
#include "thread.h"

static int start(void)
{
	return fe_thread_start(NULL);
}

const struct fe_task fe_timer_thread = {
	.name = "timer-thread",
	.number = FE_BANK_TIMER_THREAD,
	.needs_period = true,
	.stays = true,
	.series_count = 2,
	.series = { FE_BANK_WAKEUP, FE_BANK_WAKEUP_CORRECTED },
	.counters = FE_THREAD_COUNTERS,
	.start = start,
	.stop = fe_thread_stop,
	.settings = fe_thread_settings,
};
