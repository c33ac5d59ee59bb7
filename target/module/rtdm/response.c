// SPDX-License-Identifier: GPL-2.0-or-later
/* response: the output follows the input, in the core's interrupt handler. */
#include <linux/irq.h>

#include "answer.h"
#include "rtdm.h"

static rtdm_irq_t handle;
static int irq;
static int answered_level;

static int answer(rtdm_irq_t *entered_by)
{
	ktime_t entered = fe_rtdm_now();
	rtdm_lockctx_t context;

	rtdm_lock_get_irqsave(&fe_acting, context);
	fe_answer(entered, fe_rtdm_now, &answered_level);
	rtdm_lock_put_irqrestore(&fe_acting, context);
	return RTDM_IRQ_HANDLED;
}

static int start(void)
{
	int error;

	irq = fe_pins_irq();
	if (irq < 0)
		return irq;
	answered_level = fe_output_level;
	error = irq_set_irq_type(irq, IRQ_TYPE_EDGE_BOTH);
	if (!error)
		error = rtdm_irq_request(&handle, irq, answer, 0, "fastenough", NULL);
	if (error)
		fe_refuse("interrupt %d cannot be had from the core: error %d; the driver of chip '%s' must be one that the interrupt pipeline can use",
			  irq, error, fe_options.chip);
	return error;
}

static void stop(void)
{
	rtdm_irq_free(&handle);
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
