// SPDX-License-Identifier: GPL-2.0-or-later
/* A periodic kernel thread of the core. */
#include <linux/interrupt.h>
#include <evl/sched.h>
#include <evl/thread.h>

#include "oob.h"
#include "thread.h"

static struct evl_kthread thread;
static ktime_t first;

static void turn(unsigned long overruns)
{
	unsigned long flags = hard_local_irq_save();

	fe_wakeup_handle(fe_oob_now(), overruns);
	hard_local_irq_restore(flags);
}

/* A stop request also ends the waiting; that is no act. */
static void run(void *unused)
{
	int error = evl_set_period(&evl_mono_clock, first, ns_to_ktime(fe_options.period_ns));

	while (!error) {
		unsigned long overruns = 0;

		error = evl_wait_period(&overruns);
		if (evl_kthread_should_stop())
			break;
		if (error == -ETIMEDOUT)
			error = 0;
		if (!error)
			turn(overruns);
	}
}

int fe_thread_start(bool (*act_function)(struct fe_bank *bank))
{
	int error;

	first = fe_wakeup_begin(act_function, ktime_to_ns(evl_get_clock_gravity(&evl_mono_clock, kernel)));
	error = evl_run_kthread_on_cpu(&thread, fe_cpu, run, NULL, fe_options.priority, EVL_CLONE_PRIVATE, "fastenough");
	if (error)
		fe_refuse("the core refused a thread of priority %d on CPU %d: error %d", fe_options.priority, fe_cpu, error);
	return error;
}

void fe_thread_stop(void)
{
	evl_stop_kthread(&thread);
}

void fe_thread_settings(struct fe_bank_value settings[FE_BANK_SETTINGS])
{
	struct evl_thread_state state;

	evl_get_thread_state(&thread.thread, &state);
	settings[FE_BANK_POLICY] = fe_setting(SCHED_FIFO, state.eattrs.sched_policy);
	settings[FE_BANK_PRIORITY] = fe_setting(fe_options.priority, state.eattrs.sched_priority);
}
