// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/delay.h>
#include <linux/gpio/consumer.h>

#include "toggle.h"

static int level;
static bool ending, ended;

bool fe_toggle(void)
{
	level = !level;
	gpiod_set_raw_value(fe_output, level);
	if (READ_ONCE(ending) && !level)
		WRITE_ONCE(ended, true);
	return !ended;
}

void fe_toggle_end(void)
{
	ktime_t latest = ktime_add_ns(ktime_get(), 3 * (u64)fe_options.period_ns + NSEC_PER_SEC);

	WRITE_ONCE(ending, true);
	while (!READ_ONCE(ended) && ktime_before(ktime_get(), latest))
		usleep_range(20, 200);
}
