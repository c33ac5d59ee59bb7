// SPDX-License-Identifier: GPL-2.0-or-later
/* The grid of due times, and the charges of a late act for the periods that it missed. */
#include <linux/hrtimer.h>

#include "fastenough.h"

/* Time from now to the begin of the grid: the task runs by then. */
#define LEAD_NS 10000000

ktime_t fe_grid_begin(void)
{
	ktime_t begin = ktime_add_ns(ktime_get(), LEAD_NS);

	fe_recorder_begin(begin);
	return ktime_add_ns(begin, fe_options.period_ns);
}

u64 fe_grid_act(struct fe_bank *bank, ktime_t due, ktime_t now)
{
	s64 due_ns = ktime_to_ns(due), now_ns = ktime_to_ns(now), period_ns = fe_options.period_ns;
	u64 missed = fe_periods_missed(due_ns, now_ns, period_ns);

	fe_record(bank, FE_WAKEUP, now_ns - due_ns, now);
	fe_record(bank, FE_WAKEUP_CORRECTED, now_ns - due_ns, now);
	if (missed)
		fe_record_charges(bank, FE_WAKEUP_CORRECTED, fe_charges_of(due_ns, now_ns, period_ns, missed));
	bank->series[FE_WAKEUP].missed += missed;
	bank->series[FE_WAKEUP_CORRECTED].missed += missed;
	return missed + 1;
}
