// SPDX-License-Identifier: GPL-2.0-or-later
/* periodic: a thread of the core toggles the output. */
#include "thread.h"
#include "toggle.h"

static bool toggle(struct fe_bank *bank)
{
	if (!fe_toggle())
		return false;
	bank->counters[FE_BANK_TOGGLED]++;
	return true;
}

static int start(void)
{
	return fe_thread_start(toggle);
}

static void stop(void)
{
	fe_toggle_end();
	fe_thread_stop();
}

const struct fe_task fe_periodic = {
	.name = "periodic",
	.number = FE_BANK_PERIODIC_THREAD,
	.needs_output = true,
	.needs_period = true,
	.stays = true,
	.series_count = 2,
	.series = { FE_BANK_WAKEUP, FE_BANK_WAKEUP_CORRECTED },
	.counters = 1 << FE_BANK_TOGGLED | FE_THREAD_COUNTERS,
	.start = start,
	.stop = stop,
	.settings = fe_thread_settings,
};
