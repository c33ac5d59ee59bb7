/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interrupt handler of the task `response`; each core calls it from its interrupt.c. */
#ifndef FASTENOUGH_ANSWER_H
#define FASTENOUGH_ANSWER_H

#include <linux/gpio/consumer.h>

#include "fastenough.h"

/* The current level of the output. */
extern int fe_answer_level;

/* By the core: each edge of the input calls fe_answer() until the interrupt is released. */
int fe_interrupt_request(int irq);
void fe_interrupt_release(int irq);

/* Two edges within the time of the interrupt leave the output unchanged; that is counted. */
static inline void fe_answer(ktime_t entered, ktime_t (*now)(void))
{
	int seen = gpiod_get_raw_value(fe_input);
	struct fe_bank *bank;
	ktime_t written;

	gpiod_set_raw_value(fe_output, seen);
	written = now();
	bank = fe_recorder_bank_at(written);
	bank->counters[FE_BANK_SEEN]++;
	bank->counters[seen == fe_answer_level ? FE_BANK_UNCHANGED : FE_BANK_ANSWERED]++;
	fe_answer_level = seen;
	fe_record(bank, 0, ktime_to_ns(ktime_sub(written, entered)), written);
}

#endif
