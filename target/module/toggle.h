/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The act of `periodic`, whichever core schedules it. */
#ifndef FASTENOUGH_TOGGLE_H
#define FASTENOUGH_TOGGLE_H

#include <linux/compiler.h>
#include <linux/gpio/consumer.h>

#include "fastenough.h"

extern int fe_toggle_level;
extern bool fe_toggle_ending;

/* Toggles the output; false after the end of the task: then there was no act to record. */
static inline bool fe_toggle(void)
{
	if (!fe_toggle_level && READ_ONCE(fe_toggle_ending))
		return false;
	WRITE_ONCE(fe_toggle_level, !fe_toggle_level);
	gpiod_set_raw_value(fe_output, fe_toggle_level);
	return true;
}

/* Call it before stopping the task: returns when the output is low for good. */
void fe_toggle_end(void);

#endif
