// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the periodic thread of a real-time core does each time it is woken.
 *
 * What it misses is skipped, never made up for; the clock tells it, not the core: where the timer's interrupt comes later than
 * the thread has read the clock, a core wakes it a second time for one due time, and its count is a period ahead from then on.
 * The core's count is recorded as well.
 */
#include "thread.h"

/* What clocks and timers are rounded by is less. */
#define ROUNDED_NS 1000

static bool (*act)(struct fe_bank *bank);
static ktime_t due;
static s64 early_ns;

ktime_t fe_turn_first(bool (*to_do)(struct fe_bank *bank), s64 gravity_ns)
{
	act = to_do;
	early_ns = gravity_ns + ROUNDED_NS;
	due = fe_grid_lay();
	return due;
}

void fe_turn(ktime_t now, unsigned long overruns)
{
	struct fe_bank *bank = fe_recorder_filling(now);

	bank->counters[FE_BANK_CORE_OVERRUNS] += overruns;
	/* Earlier than the core may be, it is a wake-up for a due time that has been served. */
	if (ktime_to_ns(ktime_sub(due, now)) > early_ns)
		return;
	if (!act || act(bank))
		due = ktime_add_ns(due, fe_grid_act(bank, due, now) * fe_options.period_ns);
	else
		fe_recorder_end(now);
}
