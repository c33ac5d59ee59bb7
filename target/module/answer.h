/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The task `response`, as its interrupt sees it: each core has an interrupt.c. */
#ifndef FASTENOUGH_ANSWER_H
#define FASTENOUGH_ANSWER_H

#include <linux/gpio/consumer.h>

#include "fastenough.h"

/* What the output was left at. */
extern int fe_answered_level;

/* By the core: from here on each edge of the input ends in fe_answer(), until it is let go of. */
int fe_interrupt_take(int irq);
void fe_interrupt_let_go(int irq);

/* A pair of edges closer together than the interrupt leaves the output as it was: that is counted, not hidden. */
static inline void fe_answer(ktime_t entered, ktime_t (*now)(void))
{
	int seen = gpiod_get_raw_value(fe_input);
	struct fe_bank *bank;
	ktime_t written;

	gpiod_set_raw_value(fe_output, seen);
	written = now();
	bank = fe_recorder_filling(written);
	bank->counters[FE_BANK_SEEN]++;
	bank->counters[seen == fe_answered_level ? FE_BANK_UNCHANGED : FE_BANK_ANSWERED]++;
	fe_answered_level = seen;
	fe_record(bank, 0, ktime_to_ns(ktime_sub(written, entered)), written);
}

#endif
