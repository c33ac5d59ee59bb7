// SPDX-License-Identifier: GPL-2.0-or-later
/* periodic: a timer interrupt toggles the output. */
#include <linux/gpio/consumer.h>

#include "fastenough.h"
#include "timer.h"

enum { TOGGLED };

static struct hrtimer timer;
static int level;

/* The output first: what is measured outside must not wait for what is measured inside. */
static enum hrtimer_restart toggle(struct hrtimer *expired)
{
	ktime_t now = ktime_get();
	struct fe_bank *bank;

	level = !level;
	gpiod_set_raw_value(fe_output, level);
	bank = fe_recorder_filling();
	bank->counters[TOGGLED]++;
	return fe_timer_next(expired, bank, now);
}

static int start(void)
{
	return fe_timer_start(&timer, toggle);
}

static void stop(void)
{
	hrtimer_cancel(&timer);
}

const struct fe_task fe_periodic = {
	.name = "periodic",
	.probe = "periodic",
	.method = "timer-handler",
	.needs_output = true,
	.needs_period = true,
	.series = { &fe_wakeup, &fe_wakeup_owed },
	.counters = { "toggled" },
	.start = start,
	.stop = stop,
};
