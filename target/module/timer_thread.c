// SPDX-License-Identifier: GPL-2.0-or-later
/* timer-thread: wake-up latency of a real-time kernel thread. */
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/version.h>
#include <uapi/linux/sched/types.h>

#include "fastenough.h"

static struct task_struct *thread;
static ktime_t due;

/* Missed periods are skipped and not caught up. */
static void act(void)
{
	ktime_t now;

	preempt_disable();
	now = ktime_get();
	due = ktime_add_ns(due, fe_grid_act(fe_recorder_bank_at(now), due, now) * fe_options.period_ns);
	preempt_enable();
}

/* The thread sleeps once per period, so it cannot monopolise its CPU.  A last act accounts for periods due before the stop. */
static int run(void *data)
{
	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!schedule_hrtimeout_range(&due, 0, HRTIMER_MODE_ABS))
			act();
	}
	if (!ktime_before(ktime_get(), due))
		act();
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
		fe_refuse("priority %d was refused: error %d", fe_options.priority, error);
	return error;
}
#else
/* In these kernels a module's thread has a fixed priority. */
static int raise_thread(void)
{
	if (fe_options.priority != MAX_RT_PRIO / 2) {
		fe_refuse("priority=%d is not available: before Linux 5.14 a module's thread has a fixed priority; choose priority=%d",
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
	due = fe_grid_begin();
	wake_up_process(thread);
	return 0;
}

static void stop(void)
{
	kthread_stop(thread);
}

static void settings(struct fe_bank_value settings[FE_BANK_SETTINGS])
{
	settings[FE_BANK_POLICY] = fe_setting(SCHED_FIFO, thread->policy);
	settings[FE_BANK_PRIORITY] = fe_setting(fe_options.priority, thread->rt_priority);
}

const struct fe_task fe_timer_thread = {
	.name = "timer-thread",
	.number = FE_BANK_TIMER_THREAD,
	.needs_period = true,
	.series_count = 2,
	.series = { FE_BANK_WAKEUP, FE_BANK_WAKEUP_CORRECTED },
	.start = start,
	.stop = stop,
	.settings = settings,
	.thread = &thread,
};
