// SPDX-License-Identifier: GPL-2.0-or-later
/* response: the output follows the input, in the interrupt's top half. */
#include <linux/interrupt.h>

#include "answer.h"

static int irq;
static int answered_level;

static irqreturn_t answer(int number, void *data)
{
	fe_answer(ktime_get(), ktime_get, &answered_level);
	return IRQ_HANDLED;
}

static int start(void)
{
	int error;

	irq = fe_pins_irq();
	if (irq < 0)
		return irq;
	answered_level = fe_output_level;
	error = request_irq(irq, answer, IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING | IRQF_NO_THREAD, "fastenough",
			    &irq);
	if (error)
		fe_refuse("interrupt %d cannot be had: error %d", irq, error);
	return error;
}

static void stop(void)
{
	free_irq(irq, &irq);
}

static void settings(struct fe_bank_value settings[FE_BANK_SETTINGS])
{
	settings[FE_BANK_IRQ] = (struct fe_bank_value){ FE_BANK_IN_EFFECT, 0, irq };
}

const struct fe_task fe_response = {
	.name = "response",
	.number = FE_BANK_RESPONSE,
	.needs_input = true,
	.needs_output = true,
	.series_count = 1,
	.series = { FE_BANK_ANSWER },
	.counters = 1 << FE_BANK_SEEN | 1 << FE_BANK_ANSWERED | 1 << FE_BANK_UNCHANGED,
	.start = start,
	.stop = stop,
	.settings = settings,
};
