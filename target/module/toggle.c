// SPDX-License-Identifier: GPL-2.0-or-later
/* periodic ends with its output low, by an act at a due time: a line released while high would fall at another time. */
#include <linux/delay.h>

#include "toggle.h"

/* A millisecond or more each: together longer than the longest period. */
#define MAX_POLLS 2000

int fe_toggle_level;
bool fe_toggle_ending;

void fe_toggle_end(void)
{
	unsigned int left;

	WRITE_ONCE(fe_toggle_ending, true);
	fe_core.settle(); /* all later acts see it */
	for (left = MAX_POLLS; left && READ_ONCE(fe_toggle_level); left--)
		usleep_range(USEC_PER_MSEC, 2 * USEC_PER_MSEC);
	fe_core.settle(); /* the act that set it low has been recorded */
}
