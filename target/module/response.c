// SPDX-License-Identifier: GPL-2.0-or-later
/* response: the output follows the input, in the interrupt of the core (its interrupt.c). */
#include "answer.h"

int fe_answer_level;

static int irq;

static int start(void)
{
	irq = fe_pins_irq();
	if (irq < 0)
		return irq;
	fe_answer_level = fe_output_level;
	return fe_interrupt_request(irq);
}

static void stop(void)
{
	fe_interrupt_release(irq);
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
