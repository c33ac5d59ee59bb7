/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the interrupt of the task `response` does, whatever core it is of. */
#ifndef FASTENOUGH_ANSWER_H
#define FASTENOUGH_ANSWER_H

#include <linux/gpio/consumer.h>

#include "fastenough.h"

/*
 * *level is what the output was left at.  A pair of edges closer together than the interrupt leaves it as it was: that is
 * counted, not hidden.
 */
static inline void fe_answer(ktime_t entered, ktime_t (*now)(void), int *level)
{
	int seen = gpiod_get_raw_value(fe_input);
	struct fe_bank *bank;
	ktime_t written;

	gpiod_set_raw_value(fe_output, seen);
	written = now();
	bank = fe_recorder_filling(written);
	bank->counters[FE_BANK_SEEN]++;
	bank->counters[seen == *level ? FE_BANK_UNCHANGED : FE_BANK_ANSWERED]++;
	*level = seen;
	fe_record(bank, 0, ktime_to_ns(ktime_sub(written, entered)), written);
}

#endif
