// SPDX-License-Identifier: GPL-2.0-or-later
/* periodic: a thread of the core toggles the output. */
#include <linux/gpio/consumer.h>

#include "thread.h"

static int level;

static void toggle(struct fe_bank *bank)
{
	level = !level;
	gpiod_set_raw_value(fe_output, level);
	bank->counters[FE_BANK_TOGGLED]++;
}

static int start(void)
{
	return fe_thread_start(toggle);
}

const struct fe_task fe_periodic = {
	.name = "periodic",
	.number = FE_BANK_PERIODIC_THREAD,
	.needs_output = true,
	.needs_period = true,
	.stays = true,
	.series_count = 2,
	.series = { FE_BANK_WAKEUP, FE_BANK_WAKEUP_CORRECTED },
	.counters = 1 << FE_BANK_TOGGLED,
	.start = start,
	.stop = fe_thread_stop,
	.settings = fe_thread_settings,
};
