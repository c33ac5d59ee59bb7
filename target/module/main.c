// SPDX-License-Identifier: GPL-2.0-or-later
/* fastenough.ko: parameters, the list of tasks, load and unload. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/string.h>

#include "fastenough.h"

#define SHORTEST_PERIOD_NS 20000ul
#define LONGEST_PERIOD_NS 1000000000ul

struct fe_options fe_options = {
	.chip = "",
	.run_id = "",
	.in_line = -1,
	.out_line = -1,
	.cpu = -1,
	.priority = 98,
	.period_ns = 1000000,
	.interval_ms = 1000,
};
module_param_named(task, fe_options.task, charp, 0444);
MODULE_PARM_DESC(task, "response, periodic, timer-handler or timer-thread");
module_param_named(chip, fe_options.chip, charp, 0444);
MODULE_PARM_DESC(chip, "label of the GPIO chip");
module_param_named(in_line, fe_options.in_line, int, 0444);
MODULE_PARM_DESC(in_line, "offset of the input line (response)");
module_param_named(out_line, fe_options.out_line, int, 0444);
MODULE_PARM_DESC(out_line, "offset of the output line (response, periodic)");
module_param_named(cpu, fe_options.cpu, int, 0444);
MODULE_PARM_DESC(cpu, "CPU of the timer or thread; -1: wherever the module is loaded");
module_param_named(priority, fe_options.priority, int, 0444);
MODULE_PARM_DESC(priority, "SCHED_FIFO priority of timer-thread, 1 to 99");
module_param_named(period_ns, fe_options.period_ns, ulong, 0444);
MODULE_PARM_DESC(period_ns, "period, 20000 to 1000000000 (periodic and timer tasks)");
module_param_named(interval_ms, fe_options.interval_ms, uint, 0444);
MODULE_PARM_DESC(interval_ms, "length of a recording's intervals");
module_param_named(duration_ms, fe_options.duration_ms, uint, 0444);
MODULE_PARM_DESC(duration_ms, "length of a recording; 0: until stop is written to the device");
module_param_named(run_id, fe_options.run_id, charp, 0444);
MODULE_PARM_DESC(run_id, "goes into the recording's head");

static const struct fe_task *const tasks[] = {
	&fe_response,
	&fe_periodic,
	&fe_timer_handler,
	&fe_timer_thread,
};

static const struct fe_task *task;

static const struct fe_task *find_task(const char *name)
{
	size_t i;

	for (i = 0; name && i < ARRAY_SIZE(tasks); i++)
		if (!strcmp(tasks[i]->name, name))
			return tasks[i];
	return NULL;
}

/* The run id is printed into JSON, the rest are numbers. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			return false;
	return true;
}

static int check_options(void)
{
	if (!task) {
		pr_err("task=%s is unknown: choose response, periodic, timer-handler or timer-thread\n",
		       fe_options.task ? fe_options.task : "");
		return -EINVAL;
	}
	if (task->needs_period &&
	    (fe_options.period_ns < SHORTEST_PERIOD_NS || fe_options.period_ns > LONGEST_PERIOD_NS)) {
		pr_err("period_ns=%lu is out of range: choose %lu to %lu\n", fe_options.period_ns,
		       SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS);
		return -EINVAL;
	}
	if (fe_options.cpu < -1 || fe_options.cpu >= (int)nr_cpu_ids ||
	    (fe_options.cpu >= 0 && !cpu_online(fe_options.cpu))) {
		pr_err("cpu=%d is not online: choose one that is, or -1 for any\n", fe_options.cpu);
		return -EINVAL;
	}
	if (fe_options.priority < 1 || fe_options.priority > 99) {
		pr_err("priority=%d is out of range: choose 1 to 99\n", fe_options.priority);
		return -EINVAL;
	}
	if (fe_options.interval_ms < 10) {
		pr_err("interval_ms=%u is too short: choose 10 or more\n", fe_options.interval_ms);
		return -EINVAL;
	}
	if (!is_plain(fe_options.run_id)) {
		pr_err("run_id may hold printable ASCII only, without quotes and backslashes\n");
		return -EINVAL;
	}
	return 0;
}

static int __init fastenough_init(void)
{
	int error;

	task = find_task(fe_options.task);
	error = check_options();
	if (error)
		return error;
	error = fe_recorder_create();
	if (error)
		return error;
	error = fe_pins_get(task);
	if (error)
		goto destroy_recorder;
	error = task->start();
	if (error)
		goto put_pins;
	error = fe_recording_create(task);
	if (error)
		goto stop_task;
	pr_info("%s is running\n", task->name);
	return 0;

stop_task:
	task->stop();
put_pins:
	fe_pins_put();
destroy_recorder:
	fe_recorder_destroy();
	return error;
}

static void __exit fastenough_exit(void)
{
	size_t i;

	fe_recording_destroy();
	task->stop();
	fe_pins_put();
	fe_recorder_clear(fe_recorder_swap());
	for (i = 0; i < FE_MAX_COUNTERS && task->counters[i]; i++)
		pr_info("%s: %s=%llu\n", task->name, task->counters[i], fe_recorder_counted(i));
	fe_recorder_destroy();
}

module_init(fastenough_init);
module_exit(fastenough_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION(FE_MODULE_VERSION);
MODULE_DESCRIPTION("Timed tasks in the kernel: is this Linux fast enough?");
