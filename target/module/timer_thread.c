// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-thread: how late a real-time kernel thread runs after the time it slept for. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/version.h>
#include <uapi/linux/sched/types.h>

#include "fastenough.h"

static struct task_struct *thread;

/* Whatever it missed is skipped, never made up for: it sleeps once per turn and cannot hold its CPU. */
static int run(void *data)
{
	ktime_t due = fe_grid_first();

	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (schedule_hrtimeout_range(&due, 0, HRTIMER_MODE_ABS))
			continue;
		preempt_disable();
		due = ktime_add_ns(due, fe_grid_act(fe_recorder_filling(), due, ktime_get()) * fe_options.period_ns);
		preempt_enable();
	}
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
static int raise_thread(void)
{
	struct sched_attr fifo = {
		.size = sizeof(fifo),
		.sched_policy = SCHED_FIFO,
		.sched_priority = fe_options.priority,
	};
	int error = sched_setattr_nocheck(thread, &fifo);

	if (error)
		pr_err("priority %d was refused: error %d\n", fe_options.priority, error);
	return error;
}
#else
/* Modules may ask these kernels for one priority only. */
static int raise_thread(void)
{
	if (fe_options.priority != MAX_RT_PRIO / 2) {
		pr_err("priority=%d cannot be had, kernels before 5.14 give a module's thread only one: choose priority=%d\n",
		       fe_options.priority, MAX_RT_PRIO / 2);
		return -EINVAL;
	}
	sched_set_fifo(thread);
	return 0;
}
#endif

static int start(void)
{
	int error;

	thread = kthread_create(run, NULL, "fastenough");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (fe_options.cpu >= 0)
		kthread_bind(thread, fe_options.cpu);
	error = raise_thread();
	if (error) {
		kthread_stop(thread);
		return error;
	}
	wake_up_process(thread);
	return 0;
}

static void stop(void)
{
	kthread_stop(thread);
}

static int settings(struct fe_setting settings[FE_MAX_SETTINGS])
{
	settings[0] = (struct fe_setting){ "policy", SCHED_FIFO, thread->policy };
	settings[1] = (struct fe_setting){ "priority", fe_options.priority, thread->rt_priority };
	return 2;
}

const struct fe_task fe_timer_thread = {
	.name = "timer-thread",
	.probe = "timer",
	.method = "kernel-thread",
	.needs_period = true,
	.series = { &fe_wakeup, &fe_wakeup_owed },
	.start = start,
	.stop = stop,
	.settings = settings,
};
