// SPDX-License-Identifier: GPL-2.0-or-later
/* The grid of due times, and what an act that comes late owes to the periods it slept through. */
#include <linux/hrtimer.h>
#include <linux/math64.h>

#include "fastenough.h"

#define MOST_CHARGED 4096u /* values written by one act: bounds the time spent with interrupts off */

const struct fe_series_kind fe_wakeup = {
	.name = "wakeup",
	.from = "due time",
	.to = "act began",
	.periodic = true,
};

const struct fe_series_kind fe_wakeup_owed = {
	.name = "wakeup_owed",
	.from = "due time of each period",
	.to = "act that served it began",
	.periodic = true,
};

ktime_t fe_grid_first(void)
{
	return ktime_add_ns(ktime_get(), 10 * (u64)fe_options.period_ns);
}

/* Record one act; returns how many periods the grid moves on (1 if none was missed). */
u64 fe_grid_act(struct fe_bank *bank, ktime_t due, ktime_t now)
{
	s64 late_ns = ktime_to_ns(ktime_sub(now, due));
	u64 missed = 0, charged, i;

	if (late_ns >= (s64)fe_options.period_ns)
		missed = div64_ul(late_ns, fe_options.period_ns);
	charged = min_t(u64, missed, MOST_CHARGED);
	fe_record(bank, FE_WAKEUP, late_ns, now);
	bank->series[FE_WAKEUP].missed += missed;
	for (i = 0; i <= charged; i++)
		fe_record(bank, FE_WAKEUP_OWED, late_ns - (s64)(i * fe_options.period_ns), now);
	bank->series[FE_WAKEUP_OWED].lost += missed - charged;
	return missed + 1;
}
