// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps a CPU from Linux and from the Cobalt core alike: for a width, so many times, in a timer handler of the core's. */
#include <linux/module.h>
#include <rtdm/driver.h>

#define APART_NS (100 * NSEC_PER_MSEC)

static int cpu;
module_param(cpu, int, 0444);
static ulong width_ns;
module_param(width_ns, ulong, 0444);
static uint times;
module_param(times, uint, 0444);
static uint done; /* to be read */
module_param(done, uint, 0444);

static rtdm_timer_t timer;

static void hog(rtdm_timer_t *expired)
{
	nanosecs_abs_t end = rtdm_clock_read_monotonic() + width_ns;

	while (rtdm_clock_read_monotonic() < end)
		cpu_relax();
	if (++done == times)
		rtdm_timer_stop_in_handler(expired);
}

static int __init oob_hog_init(void)
{
	rtdm_lockctx_t context;
	int error = rtdm_timer_init(&timer, hog, KBUILD_MODNAME);

	if (error)
		return error;
	cobalt_atomic_enter(context);
	xntimer_set_affinity(&timer, xnsched_struct(cpu));
	error = rtdm_timer_start(&timer, APART_NS, APART_NS, RTDM_TIMERMODE_RELATIVE);
	cobalt_atomic_leave(context);
	return error;
}

static void __exit oob_hog_exit(void)
{
	rtdm_timer_destroy(&timer);
}

module_init(oob_hog_init);
module_exit(oob_hog_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("keeps a CPU, out of band");
