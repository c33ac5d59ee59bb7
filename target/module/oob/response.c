// SPDX-License-Identifier: GPL-2.0-or-later
/* response: the output follows the input, in an interrupt handler out of band. */
#include <linux/interrupt.h>

#include "answer.h"
#include "oob.h"

static int irq;
static int answered_level;

static irqreturn_t answer(int number, void *data)
{
	fe_answer(fe_oob_now(), fe_oob_now, &answered_level);
	return IRQ_HANDLED;
}

static int start(void)
{
	int error;

	irq = fe_pins_irq();
	if (irq < 0)
		return irq;
	answered_level = fe_output_level;
	error = request_irq(irq, answer, IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING | IRQF_OOB, "fastenough", &irq);
	if (error)
		fe_refuse("interrupt %d cannot be had out of band: error %d; the driver of chip '%s' must be one that the interrupt pipeline can use",
			  irq, error, fe_options.chip);
	return error;
}

static void stop(void)
{
	free_irq(irq, &irq);
	fe_oob_settle();
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
