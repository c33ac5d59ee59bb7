// SPDX-License-Identifier: GPL-2.0-or-later
/* The grid of due times, and what an act that comes late is charged with for the periods it slept through. */
#include <linux/hrtimer.h>

#include "fastenough.h"
#include "periodic.h"

#define MOST_CHARGED 4096u /* values written by one act: bounds the time spent with interrupts off */

ktime_t fe_grid_first(void)
{
	return ktime_add_ns(ktime_get(), 10 * (u64)fe_options.period_ns);
}

/* Record one act; returns how many periods the grid moves on (1 if none was missed). */
u64 fe_grid_act(struct fe_bank *bank, ktime_t due, ktime_t now)
{
	s64 due_ns = ktime_to_ns(due), now_ns = ktime_to_ns(now), period_ns = fe_options.period_ns;
	u64 missed = fe_periods_missed(due_ns, now_ns, period_ns);
	u64 charged = min_t(u64, missed, MOST_CHARGED), n;

	fe_record(bank, FE_WAKEUP, now_ns - due_ns, now);
	for (n = 0; n <= charged; n++)
		fe_record(bank, FE_WAKEUP_CORRECTED, fe_delay_charged(due_ns, now_ns, period_ns, n), now);
	bank->series[FE_WAKEUP].missed += missed;
	bank->series[FE_WAKEUP_CORRECTED].missed += missed;
	if (missed > charged)
		fe_record_lost(bank, FE_WAKEUP_CORRECTED, missed - charged);
	return missed + 1;
}
