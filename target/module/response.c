// SPDX-License-Identifier: GPL-2.0-or-later
/* response: the output follows the input, in the interrupt's top half. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gpio/consumer.h>
#include <linux/interrupt.h>
#include <linux/printk.h>

#include "fastenough.h"

enum { SEEN, ANSWERED, UNCHANGED };

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
	bank = fe_recorder_filling();
	bank->counters[SEEN]++;
	bank->counters[level == answered_level ? UNCHANGED : ANSWERED]++;
	answered_level = level;
	fe_record(bank, 0, ktime_to_ns(ktime_sub(written, entered)), written);
	return IRQ_HANDLED;
}

static int start(void)
{
	int error;

	irq = gpiod_to_irq(fe_input);
	if (irq < 0) {
		pr_err("line %d of '%s' cannot raise interrupts: error %d\n", fe_options.in_line, fe_options.chip, irq);
		return irq;
	}
	answered_level = fe_output_level;
	error = request_irq(irq, answer, IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING | IRQF_NO_THREAD, "fastenough",
			    &irq);
	if (error)
		pr_err("interrupt %d cannot be had: error %d\n", irq, error);
	return error;
}

static void stop(void)
{
	free_irq(irq, &irq);
}

static int settings(struct fe_setting settings[FE_MAX_SETTINGS])
{
	settings[0] = (struct fe_setting){ "irq", irq, irq };
	return 1;
}

static const struct fe_series_kind answer_series = {
	.name = "answer",
	.from = "interrupt handler entered",
	.to = "output written",
};

const struct fe_task fe_response = {
	.name = "response",
	.probe = "response",
	.method = "irq-top-half",
	.needs_input = true,
	.needs_output = true,
	.series = { &answer_series },
	.counters = { "seen", "answered", "unchanged" },
	.start = start,
	.stop = stop,
	.settings = settings,
};
