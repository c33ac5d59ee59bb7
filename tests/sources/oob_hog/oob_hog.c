// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps a CPU from Linux and from a real-time core alike: with the processor's interrupts off for a width, so many times. */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/timekeeping.h>

#define APART_MS 100

static int cpu;
module_param(cpu, int, 0444);
static ulong width_ns;
module_param(width_ns, ulong, 0444);
static uint times;
module_param(times, uint, 0444);
static uint done; /* to be read */
module_param(done, uint, 0444);

static struct task_struct *thread;

static void keep(void)
{
	unsigned long flags = hard_local_irq_save();
	u64 end = ktime_get_mono_fast_ns() + width_ns;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
	hard_local_irq_restore(flags);
}

static int hog(void *unused)
{
	while (!kthread_should_stop()) {
		msleep(APART_MS);
		if (done == times)
			continue;
		keep();
		done++;
	}
	return 0;
}

static int __init oob_hog_init(void)
{
	thread = kthread_create(hog, NULL, KBUILD_MODNAME);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, cpu);
	wake_up_process(thread);
	return 0;
}

static void __exit oob_hog_exit(void)
{
	kthread_stop(thread);
}

module_init(oob_hog_init);
module_exit(oob_hog_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("keeps a CPU, out of band");
