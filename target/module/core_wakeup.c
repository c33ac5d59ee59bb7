// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The wake-ups of the periodic thread of a real-time core.
 *
 * Missed periods are skipped and not caught up.  They are computed from the clock, not taken from the core: if the thread
 * reads the clock before the timer's interrupt, a core wakes it twice for one due time, and the core's count is then one
 * period ahead.  The core's count is recorded too.
 */
#include "thread.h"

/* Upper bound of the rounding of clocks and timers. */
#define ROUNDED_NS 1000

static bool (*act)(struct fe_bank *bank);
static ktime_t due;
static s64 early_ns;

ktime_t fe_wakeup_begin(bool (*act_function)(struct fe_bank *bank), s64 gravity_ns)
{
	act = act_function;
	early_ns = gravity_ns + ROUNDED_NS;
	due = fe_grid_begin();
	return due;
}

void fe_wakeup_handle(ktime_t now, unsigned long overruns)
{
	struct fe_bank *bank = fe_recorder_bank_at(now);

	bank->counters[FE_BANK_CORE_OVERRUNS] += overruns;
	/* Earlier than the core's gravity allows: a second wake-up for the previous due time. */
	if (ktime_to_ns(ktime_sub(due, now)) > early_ns)
		return;
	if (!act || act(bank))
		due = ktime_add_ns(due, fe_grid_act(bank, due, now) * fe_options.period_ns);
	else
		fe_recorder_end(now);
}
