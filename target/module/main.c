// SPDX-License-Identifier: GPL-2.0-or-later
/* fastenough.ko: parameters, load and unload. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "fastenough.h"

#define SHORTEST_PERIOD_NS 20000ul
#define LONGEST_PERIOD_NS 1000000000ul

struct fe_options fe_options = {
	.chip = "",
	.in_line = -1,
	.out_line = -1,
	.cpu = -1,
	.priority = 98,
	.period_ns = 1000000,
	.width_ns = 10000000,
	.window_ns = 20000000,
};
module_param_named(task, fe_options.task, charp, 0444);
MODULE_PARM_DESC(task, "task to run: response, periodic, timer-handler, timer-thread, or spin if the core has it");
module_param_named(chip, fe_options.chip, charp, 0444);
MODULE_PARM_DESC(chip, "label of the GPIO chip");
module_param_named(in_line, fe_options.in_line, int, 0444);
MODULE_PARM_DESC(in_line, "offset of the input line (response)");
module_param_named(out_line, fe_options.out_line, int, 0444);
MODULE_PARM_DESC(out_line, "offset of the output line (response, periodic)");
module_param_named(cpu, fe_options.cpu, int, 0444);
MODULE_PARM_DESC(cpu, "CPU of the timer or thread; -1: wherever the module is loaded (spin: each in turn)");
module_param_named(priority, fe_options.priority, int, 0444);
MODULE_PARM_DESC(priority, "SCHED_FIFO priority of timer-thread, 1 to 99");
module_param_named(period_ns, fe_options.period_ns, ulong, 0444);
MODULE_PARM_DESC(period_ns, "period, 20000 to 1000000000 (periodic and timer tasks)");
module_param_named(width_ns, fe_options.width_ns, ulong, 0444);
MODULE_PARM_DESC(width_ns, "time with interrupts off in each window, 1000000 to 100000000 (spin)");
module_param_named(window_ns, fe_options.window_ns, ulong, 0444);
MODULE_PARM_DESC(window_ns, "time from the start of one spin to the next, twice width_ns to 1000000000 (spin)");
module_param_named(explain, fe_options.explain, bool, 0444);
MODULE_PARM_DESC(explain, "stay loaded when the task is refused; the parameter refused has the reason");

/* Output only: with explain=1 the bench reads it. */
static char refused[256];
module_param_string(refused, refused, sizeof(refused), 0444);
MODULE_PARM_DESC(refused, "reason for which the task was refused (read-only)");
static bool core_stopped;
module_param(core_stopped, bool, 0444);
MODULE_PARM_DESC(core_stopped, "whether it was refused because the core runs no tasks now (read-only)");

int fe_cpu = -1;

static const struct fe_task *task;
static bool stopped;

static const struct fe_task *find_task(const char *name)
{
	const struct fe_task *const *entry = fe_core.tasks;

	while (*entry && strcmp((*entry)->name, name ? name : ""))
		entry++;
	return *entry;
}

void fe_refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vscnprintf(refused, sizeof(refused), format, args);
	va_end(args);
	pr_err("%s\n", refused);
}

static int check_options(void)
{
	if (!task) {
		fe_refuse("task=%s is unknown: choose %s", fe_options.task ? fe_options.task : "", fe_core.names);
		return -EINVAL;
	}
	if (task->needs_period &&
	    (fe_options.period_ns < SHORTEST_PERIOD_NS || fe_options.period_ns > LONGEST_PERIOD_NS)) {
		fe_refuse("period_ns=%lu is out of range: choose %lu to %lu", fe_options.period_ns,
			  SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS);
		return -EINVAL;
	}
	if (fe_options.cpu < -1 || fe_options.cpu >= (int)nr_cpu_ids ||
	    (fe_options.cpu >= 0 && !cpu_online(fe_options.cpu))) {
		fe_refuse("cpu=%d is not online: choose one that is, or -1 for any", fe_options.cpu);
		return -EINVAL;
	}
	if (fe_options.priority < 1 || fe_options.priority > 99) {
		fe_refuse("priority=%d is out of range: choose 1 to 99", fe_options.priority);
		return -EINVAL;
	}
	return 0;
}

static int check_core(void)
{
	int error = fe_core.check ? fe_core.check() : 0;

	core_stopped = error != 0;
	return error;
}

static void choose_cpu(void)
{
	if (!task->needs_period)
		return;
	fe_cpu = fe_options.cpu;
	if (fe_cpu < 0 && task->stays)
		fe_cpu = raw_smp_processor_id();
}

/* Starts the task; on an error everything is released. */
static int start_task(void)
{
	int error = fe_recorder_create(task->series_count);

	if (error)
		return error;
	error = fe_pins_get(task);
	if (error)
		goto destroy_recorder;
	choose_cpu();
	error = task->start();
	if (error)
		goto put_pins;
	return 0;

put_pins:
	fe_pins_put();
destroy_recorder:
	fe_recorder_destroy();
	return error;
}

void fe_stop(void)
{
	if (!stopped)
		task->stop();
	stopped = true;
}

static void end_task(void)
{
	fe_stop();
	fe_pins_put();
	fe_recorder_destroy();
}

static int start_with_device(void)
{
	int error = start_task();

	if (error)
		return error;
	error = fe_device_create(task);
	if (error)
		end_task();
	return error;
}

static int __init fastenough_init(void)
{
	int error;

	*refused = '\0';
	task = find_task(fe_options.task);
	error = check_core();
	if (!error)
		error = check_options();
	if (!error)
		error = start_with_device();
	if (!error)
		return 0;
	if (!*refused)
		fe_refuse("%s cannot start: error %d", task->name, error);
	task = NULL;
	return fe_options.explain ? 0 : error;
}

static void __exit fastenough_exit(void)
{
	if (!task)
		return;
	fe_device_destroy();
	end_task();
}

module_init(fastenough_init);
module_exit(fastenough_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION(FE_MODULE_VERSION);
MODULE_DESCRIPTION("Timed tasks in the kernel: is this Linux fast enough?");
