// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spin: time taken from a CPU while its interrupts are off: by hardware, firmware (SMIs), hypervisors, and interrupts that
 * cannot be disabled.
 *
 * A thread reads the clock in a loop for `width` of each window, and sleeps for the rest.  It runs on the requested CPU, or
 * on each CPU in turn.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "fastenough.h"

#define SHORTEST_WIDTH_NS (1000 * 1000ul)
#define LONGEST_WIDTH_NS (100 * 1000 * 1000ul)
#define LONGEST_WINDOW_NS (1000 * 1000 * 1000ul)
#define FLOOR_NS (1000 * 1000)

static struct task_struct *thread;
static s64 floor_ns;

/* Spins with interrupts off; records into the scratch bank, or without one into the bank of each instant. */
static void spin_for(u64 width_ns, struct fe_bank *scratch)
{
	ktime_t last = ktime_get(), end = ktime_add_ns(last, width_ns), now;

	for (; ktime_before(last, end); last = now) {
		now = ktime_get();
		fe_record(scratch ? scratch : fe_recorder_bank_at(now), 0, ktime_to_ns(ktime_sub(now, last)) - floor_ns,
			  now);
	}
}

static void spin_once(void)
{
	unsigned long flags;

	local_irq_save(flags);
	spin_for(fe_options.width_ns, NULL);
	fe_recorder_bank_at(ktime_get())->counters[FE_BANK_WINDOWS]++;
	local_irq_restore(flags);
}

static void choose_next_cpu(int *cpu)
{
	if (fe_options.cpu >= 0)
		return;
	*cpu = cpumask_next(*cpu, cpu_online_mask);
	if (*cpu >= (int)nr_cpu_ids)
		*cpu = cpumask_first(cpu_online_mask);
	/* If the CPU goes offline now, the thread spins where it is. */
	set_cpus_allowed_ptr(current, cpumask_of(*cpu));
}

/* Missed windows are skipped and not caught up. */
static int run(void *data)
{
	ktime_t due = ktime_get();
	int cpu = -1;

	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (schedule_hrtimeout_range(&due, 0, HRTIMER_MODE_ABS))
			continue;
		choose_next_cpu(&cpu);
		spin_once();
		due = ktime_add_ns(due, fe_options.window_ns);
		if (ktime_before(due, ktime_get()))
			due = ktime_add_ns(ktime_get(), fe_options.window_ns - fe_options.width_ns);
	}
	return 0;
}

/* Measures the shortest iteration of the measuring loop itself. */
static int measure_floor(void)
{
	struct fe_bank *scratch = vzalloc(sizeof(*scratch));
	u32 *buckets = vzalloc(FE_BANK_BUCKETS * sizeof(u32));
	unsigned long flags;
	int error = scratch && buckets ? 0 : -ENOMEM;

	floor_ns = 0;
	if (!error) {
		scratch->series[0].buckets = buckets + FE_BANK_HALF - 1;
		local_irq_save(flags);
		spin_for(FLOOR_NS, scratch);
		local_irq_restore(flags);
		floor_ns = scratch->series[0].stats.min;
		fe_tally_break(0);
	}
	vfree(buckets);
	vfree(scratch);
	return error;
}

static int check(void)
{
	if (fe_options.width_ns < SHORTEST_WIDTH_NS || fe_options.width_ns > LONGEST_WIDTH_NS) {
		fe_refuse("width_ns=%lu is out of range: choose %lu to %lu", fe_options.width_ns, SHORTEST_WIDTH_NS,
			  LONGEST_WIDTH_NS);
		return -EINVAL;
	}
	if (fe_options.window_ns > LONGEST_WINDOW_NS || fe_options.width_ns > fe_options.window_ns / 2) {
		fe_refuse("window_ns=%lu is out of range: choose twice width_ns at least, and %lu at most",
			  fe_options.window_ns, LONGEST_WINDOW_NS);
		return -EINVAL;
	}
	return 0;
}

static int start(void)
{
	int error = check();

	if (!error)
		error = measure_floor();
	if (error)
		return error;
	thread = kthread_create(run, NULL, "fastenough");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (fe_options.cpu >= 0)
		kthread_bind(thread, fe_options.cpu);
	fe_cpu = fe_options.cpu;
	wake_up_process(thread);
	return 0;
}

static void stop(void)
{
	kthread_stop(thread);
}

const struct fe_task fe_spin = {
	.name = "spin",
	.number = FE_BANK_SPIN,
	.needs_window = true,
	.series_count = 1,
	.series = { FE_BANK_GAP },
	.counters = 1 << FE_BANK_WINDOWS,
	.start = start,
	.stop = stop,
	.thread = &thread,
	.floor_ns = &floor_ns,
};
