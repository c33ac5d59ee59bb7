/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel: records the latency of a timed task in the kernel.
 *
 * The task runs since the module was loaded; its device identifies it.  The recording has the name of the probe with the
 * same act in user space, and the implementation that the module states.
 */
#include <stdio.h>
#include <string.h>

#include "bank_source.h"
#include "frame.h"
#include "grid.h"

static struct {
	const char *device;
} chosen = {FE_BANK_DEVICE};

static const struct option_spec kernel_options[] = {
	{"device", 0, OPTION_TEXT, &chosen.device, .help = "device of the module (" FE_BANK_DEVICE ")"},
	{0},
};

static const struct {
	const char *probe, *method;
} tasks[FE_BANK_TASKS] = {
	[FE_BANK_RESPONSE] = {"response", "irq-top-half"},
	[FE_BANK_PERIODIC] = {"periodic", "timer-handler"},
	[FE_BANK_TIMER_HANDLER] = {"timer", "timer-handler"},
	[FE_BANK_TIMER_THREAD] = {"timer", "kernel-thread"},
	[FE_BANK_SPIN] = {"spin", "interrupts-off"},
	[FE_BANK_PERIODIC_THREAD] = {"periodic", "kernel-thread"},
};

/* Longer intervals would overflow the 32-bit buckets. */
#define SPIN_REPORT_MOST_NS (60 * NS_PER_S)

static void check(const struct settings *settings, const struct fe_bank_head *head)
{
	if (settings->loops)
		bad_input("the module's task does not count its acts; use --duration instead of --loops");
	if (settings->warm_up_ns)
		bad_input("the module's task runs since it was loaded, which is its warm-up; omit --warm-up");
	if (settings->threshold_ns)
		bad_input("the module provides histograms, not single values; omit --threshold and --breaktrace");
	if (settings->limit_ns)
		bad_input("the module does not count values above a limit; omit --limit and read them from the histogram");
	if (head->task == FE_BANK_SPIN && settings->report_ns > SPIN_REPORT_MOST_NS)
		bad_input("spin takes too many readings for an interval of more than a minute; choose a shorter --report");
	if (settings->interval_ns != NS_PER_MS && (uint64_t)settings->interval_ns != head->period_ns)
		bad_input("the module's task has a period of %lld ns; load it with another period_ns=, or omit --interval",
			  (long long)head->period_ns);
}

static void add_parameters(struct run *run, const struct fe_bank_head *head)
{
	const struct fe_bank_value *policy = &head->settings[FE_BANK_POLICY], *priority = &head->settings[FE_BANK_PRIORITY];

	run_parameter_text(run, "method", tasks[head->task].method);
	if (policy->known)
		run_parameter_text(run, "policy", bank_policy(policy->requested));
	if (priority->known)
		run_parameter_int(run, "priority", priority->requested);
	if (head->period_ns)
		run_parameter_int(run, "interval_ns", (int64_t)head->period_ns);
	if (head->window_ns) {
		run_parameter_int(run, "width_ns", (int64_t)head->width_ns);
		run_parameter_int(run, "window_ns", (int64_t)head->window_ns);
		run_parameter_int(run, "floor_ns", (int64_t)head->floor_ns);
	}
	if (*head->chip)
		run_parameter_text(run, "chip", head->chip);
	if (head->in_line >= 0)
		run_parameter_int(run, "in", head->in_line);
	if (head->out_line >= 0)
		run_parameter_int(run, "out", head->out_line);
}

static void add_series(struct run *run, struct bank_source *source)
{
	const struct fe_bank_head *head = &source->bank.head;
	int cpu = source->source.cpu;
	struct series_spec answer = {
		.name = "answer", .from = "interrupt handler entered", .to = "output written", .any_cpu = cpu < 0, .cpu = cpu};
	struct series_spec wakeup = {
		.name = "wakeup", .from = "due time, on a grid of one interval", .to = "act in the kernel began",
		.any_cpu = cpu < 0, .cpu = cpu, .period_ns = (int64_t)head->period_ns};
	struct series_spec gap = {
		.name = "gap", .from = "a reading of the clock, interrupts off",
		.to = "the next reading, less the shortest turn of the loop (floor_ns)", .any_cpu = cpu < 0, .cpu = cpu};
	struct wakeups wakeups;

	if (head->task == FE_BANK_RESPONSE || head->task == FE_BANK_SPIN) {
		source->series[0] = run_add_series(run, head->task == FE_BANK_SPIN ? &gap : &answer);
		return;
	}
	wakeups = grid_add_counted_series(run, &wakeup);
	source->series[0] = wakeups.uncorrected;
	source->series[1] = wakeups.corrected;
}

static void kernel_setup(struct run *run)
{
	struct bank_source *source = bank_source_open(run, chosen.device);
	const struct fe_bank_head *head = &source->bank.head;

	check(run_settings(run), head);
	source->source.probe = tasks[head->task].probe;
	add_parameters(run, head);
	add_series(run, source);
	run_self_measured(run);
}

const struct probe kernel_probe = {
	.name = "kernel",
	.summary = "latency of a kernel-module task",
	.options = kernel_options,
	.setup = kernel_setup,
};
