// SPDX-License-Identifier: GPL-2.0-or-later
/* A periodic RTDM task. */
#include <linux/cpumask.h>

#include "rtdm.h"
#include "thread.h"

static rtdm_task_t thread;

static void turn(unsigned long overruns)
{
	rtdm_lockctx_t context;

	rtdm_lock_get_irqsave(&fe_acting, context);
	fe_wakeup_handle(fe_rtdm_now(), overruns);
	rtdm_lock_put_irqrestore(&fe_acting, context);
}

/* A stop request ends the waiting with another error than -ETIMEDOUT, which reports overruns. */
static void run(void *unused)
{
	while (!rtdm_task_should_stop()) {
		unsigned long overruns = 0;
		int error = rtdm_task_wait_period(&overruns);

		if (error && error != -ETIMEDOUT)
			break;
		turn(overruns);
	}
}

/* As rtdm_task_init(), but with a CPU. */
static int make(void)
{
	struct xnthread_init_attr attributes = {
		.name = "fastenough", .personality = &xenomai_personality, .affinity = *cpumask_of(fe_cpu),
	};
	union xnsched_policy_param parameters = { .rt = { .prio = fe_options.priority } };
	int error = xnthread_init(&thread, &attributes, &xnsched_class_rt, &parameters);

	if (error)
		fe_refuse("the core refused a task of priority %d on CPU %d: error %d; /proc/xenomai/affinity lists its CPUs",
			  fe_options.priority, fe_cpu, error);
	return error;
}

int fe_thread_start(bool (*act_function)(struct fe_bank *bank))
{
	struct xnthread_start_attr attributes = { .entry = run };
	int error = make();
	ktime_t first;

	if (error)
		return error;
	first = fe_wakeup_begin(act_function, xnclock_ticks_to_ns(&nkclock, xnclock_get_gravity(&nkclock, kernel)));
	error = rtdm_task_set_period(&thread, ktime_to_ns(first), fe_options.period_ns);
	if (error)
		fe_refuse("the core refused a period of %lu ns: error %d; it must exceed the gravity in /proc/xenomai/clock/coreclk",
			  fe_options.period_ns, error);
	else
		error = xnthread_start(&thread, &attributes);
	if (error)
		rtdm_task_destroy(&thread);
	return error;
}

void fe_thread_stop(void)
{
	rtdm_task_destroy(&thread);
}

void fe_thread_settings(struct fe_bank_value settings[FE_BANK_SETTINGS])
{
	settings[FE_BANK_POLICY] = fe_setting(SCHED_FIFO, thread.sched_class == &xnsched_class_rt ? SCHED_FIFO : SCHED_NORMAL);
	settings[FE_BANK_PRIORITY] = fe_setting(fe_options.priority, xnthread_current_priority(&thread));
}
