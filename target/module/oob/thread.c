// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A periodic kernel thread of the core's.  What it misses is skipped, never made up for; the clock tells it, not the core:
 * where the timer's interrupt comes later than the thread has read the clock, the core wakes it a second time for one due
 * time, and its count is a period ahead from then on.
 */
#include <linux/interrupt.h>
#include <evl/sched.h>
#include <evl/thread.h>

#include "oob.h"
#include "thread.h"

static struct evl_kthread thread;
static bool (*act)(struct fe_bank *bank);
static ktime_t due;

/* A wake-up for a due time that has been served is no act; the core may be a little early, never that much. */
static bool is_of_the_past(ktime_t now)
{
	return ktime_to_ns(ktime_sub(due, now)) > (s64)fe_options.period_ns / 2;
}

static void turn(void)
{
	unsigned long flags = hard_local_irq_save();
	ktime_t now = fe_oob_now();

	if (!is_of_the_past(now)) {
		struct fe_bank *bank = fe_recorder_filling(now);

		if (!act || act(bank))
			due = ktime_add_ns(due, fe_grid_act(bank, due, now) * fe_options.period_ns);
	}
	hard_local_irq_restore(flags);
}

/* Waiting ends also where it is told to stop: that is no act. */
static void run(void *unused)
{
	int error = evl_set_period(&evl_mono_clock, due, ns_to_ktime(fe_options.period_ns));

	while (!error) {
		error = evl_wait_period(NULL);
		if (evl_kthread_should_stop())
			break;
		if (error == -ETIMEDOUT)
			error = 0;
		if (!error)
			turn();
	}
}

int fe_thread_start(bool (*to_do)(struct fe_bank *bank))
{
	int error;

	act = to_do;
	due = fe_grid_first();
	error = evl_run_kthread_on_cpu(&thread, fe_cpu, run, NULL, fe_options.priority, EVL_CLONE_PRIVATE, "fastenough");
	if (error)
		fe_refuse("the core gives no thread of priority %d on CPU %d: error %d", fe_options.priority, fe_cpu, error);
	return error;
}

void fe_thread_stop(void)
{
	evl_stop_kthread(&thread);
}

static struct fe_bank_value both(int requested, int in_effect)
{
	return (struct fe_bank_value){ FE_BANK_REQUESTED | FE_BANK_IN_EFFECT, requested, in_effect };
}

void fe_thread_settings(struct fe_bank_value settings[FE_BANK_SETTINGS])
{
	struct evl_thread_state told;

	evl_get_thread_state(&thread.thread, &told);
	settings[FE_BANK_POLICY] = both(SCHED_FIFO, told.eattrs.sched_policy);
	settings[FE_BANK_PRIORITY] = both(fe_options.priority, told.eattrs.sched_priority);
}
