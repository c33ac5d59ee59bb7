// SPDX-License-Identifier: GPL-2.0-or-later
/* The interrupt of the input by Linux, in its top half: kernels never run this one in a thread. */
#include <linux/interrupt.h>

#include "answer.h"

static irqreturn_t answer(int number, void *data)
{
	fe_answer(ktime_get(), ktime_get);
	return IRQ_HANDLED;
}

int fe_interrupt_request(int irq)
{
	int error = request_irq(irq, answer, IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING | IRQF_NO_THREAD, "fastenough",
				&fe_answer_level);

	if (error)
		fe_refuse("interrupt %d is not available: error %d", irq, error);
	return error;
}

void fe_interrupt_release(int irq)
{
	free_irq(irq, &fe_answer_level);
}
