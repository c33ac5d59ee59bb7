// SPDX-License-Identifier: GPL-2.0-or-later
/* The interrupt of the input, by RTDM. */
#include <linux/irq.h>

#include "answer.h"
#include "rtdm.h"

static rtdm_irq_t handle;

static int answer(rtdm_irq_t *entered_by)
{
	ktime_t entered = fe_rtdm_now();
	rtdm_lockctx_t context;

	rtdm_lock_get_irqsave(&fe_acting, context);
	fe_answer(entered, fe_rtdm_now);
	rtdm_lock_put_irqrestore(&fe_acting, context);
	return RTDM_IRQ_HANDLED;
}

int fe_interrupt_request(int irq)
{
	int error = irq_set_irq_type(irq, IRQ_TYPE_EDGE_BOTH);

	if (!error)
		error = rtdm_irq_request(&handle, irq, answer, 0, "fastenough", NULL);
	if (error)
		fe_refuse("interrupt %d is not available from the core: error %d; the driver of chip '%s' must be one that the interrupt pipeline can use",
			  irq, error, fe_options.chip);
	return error;
}

void fe_interrupt_release(int irq)
{
	rtdm_irq_free(&handle);
}
