// SPDX-License-Identifier: GPL-2.0-or-later
/* periodic: a timer interrupt toggles the output. */
#include "timer.h"
#include "toggle.h"

static struct hrtimer timer;

/* Writes the output first: the external measurement must not include the recording. */
static enum hrtimer_restart toggle(struct hrtimer *expired)
{
	ktime_t now = ktime_get();
	struct fe_bank *bank;

	if (!fe_toggle()) {
		fe_recorder_end(now);
		return HRTIMER_NORESTART;
	}
	bank = fe_recorder_bank_at(now);
	bank->counters[FE_BANK_TOGGLED]++;
	return fe_timer_next(expired, bank, now);
}

static int start(void)
{
	return fe_timer_start(&timer, toggle);
}

static void stop(void)
{
	fe_toggle_end();
	hrtimer_cancel(&timer);
}

const struct fe_task fe_periodic = {
	.name = "periodic",
	.number = FE_BANK_PERIODIC,
	.needs_output = true,
	.needs_period = true,
	.stays = true,
	.series_count = 2,
	.series = { FE_BANK_WAKEUP, FE_BANK_WAKEUP_CORRECTED },
	.counters = 1 << FE_BANK_TOGGLED,
	.start = start,
	.stop = stop,
};
