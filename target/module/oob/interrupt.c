// SPDX-License-Identifier: GPL-2.0-or-later
/* The interrupt of the input, out of band. */
#include <linux/interrupt.h>

#include "answer.h"
#include "oob.h"

static irqreturn_t answer(int number, void *data)
{
	fe_answer(fe_oob_now(), fe_oob_now);
	return IRQ_HANDLED;
}

int fe_interrupt_request(int irq)
{
	int error = request_irq(irq, answer, IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING | IRQF_OOB, "fastenough",
				&fe_answer_level);

	if (error)
		fe_refuse("interrupt %d is not available out of band: error %d; the driver of chip '%s' must be one that the interrupt pipeline can use",
			  irq, error, fe_options.chip);
	return error;
}

void fe_interrupt_release(int irq)
{
	free_irq(irq, &fe_answer_level);
	fe_oob_wait_for_acts();
}
