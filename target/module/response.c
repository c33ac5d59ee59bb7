// SPDX-License-Identifier: GPL-2.0-or-later
/* response: the output follows the input, in the interrupt's top half. */
#include <linux/gpio/consumer.h>
#include <linux/interrupt.h>

#include "fastenough.h"

static int irq;
static int answered_level;

/* A pair of edges closer together than the interrupt leaves the level as it was: that is counted, not hidden. */
static irqreturn_t answer(int number, void *data)
{
	ktime_t entered = ktime_get();
	int level = gpiod_get_raw_value(fe_input);
	struct fe_bank *bank;
	ktime_t written;

	gpiod_set_raw_value(fe_output, level);
	written = ktime_get();
	bank = fe_recorder_filling(written);
	bank->counters[FE_BANK_SEEN]++;
	bank->counters[level == answered_level ? FE_BANK_UNCHANGED : FE_BANK_ANSWERED]++;
	answered_level = level;
	fe_record(bank, 0, ktime_to_ns(ktime_sub(written, entered)), written);
	return IRQ_HANDLED;
}

static int start(void)
{
	int error;

	irq = gpiod_to_irq(fe_input);
	if (irq < 0) {
		fe_refuse("line %d of '%s' cannot raise interrupts: error %d", fe_options.in_line, fe_options.chip, irq);
		return irq;
	}
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
