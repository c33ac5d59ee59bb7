// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /dev/fastenough: each read switches the banks and returns the one filled since the last read, in the format of
 * format/bank.h.  One reader at a time.  Nothing here runs in the task's context, and nothing is allocated.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "fastenough.h"

static const struct fe_task *task;
static atomic_t readers = ATOMIC_INIT(0);
static DEFINE_MUTEX(reading);
static struct fe_bank_head head; /* under the lock */

static void describe_task(void)
{
	head.magic = FE_BANK_MAGIC;
	head.version = FE_BANK_VERSION;
	head.bytes = sizeof(head);
	strscpy(head.module_version, FE_MODULE_VERSION, sizeof(head.module_version));
	strscpy(head.implementation, fe_core.implementation, sizeof(head.implementation));
	head.task = task->number;
	head.series_count = task->series_count;
	head.counters = task->counters;
	head.threaded = task->thread != NULL;
	head.period_ns = task->needs_period ? fe_options.period_ns : 0;
	head.width_ns = task->needs_window ? fe_options.width_ns : 0;
	head.window_ns = task->needs_window ? fe_options.window_ns : 0;
	head.floor_ns = task->floor_ns ? *task->floor_ns : 0;
	head.in_line = task->needs_input ? fe_options.in_line : -1;
	head.out_line = task->needs_output ? fe_options.out_line : -1;
	if (task->needs_output)
		strscpy(head.chip, fe_options.chip, sizeof(head.chip));
}

/* The thread's own counters.  /proc shows migrations only in some kernels, and other threads may have the same name. */
static void count_thread(const struct task_struct *thread)
{
	head.thread_counters[FE_BANK_VOLUNTARY_SWITCHES] = READ_ONCE(thread->nvcsw);
	head.thread_counters[FE_BANK_INVOLUNTARY_SWITCHES] = READ_ONCE(thread->nivcsw);
	head.thread_counters[FE_BANK_MIGRATIONS] = READ_ONCE(thread->se.nr_migrations);
}

/* Reads the settings and counters that exist only while the task runs. */
static void read_task_settings(void)
{
	if (task->settings)
		task->settings(head.settings);
	if (task->thread)
		count_thread(*task->thread);
}

static void describe_cpu(const struct fe_bank *bank)
{
	struct fe_bank_value *cpu = &head.settings[FE_BANK_CPU];

	if (fe_cpu < 0)
		return;
	cpu->known = FE_BANK_IN_EFFECT | (fe_options.cpu >= 0 ? FE_BANK_REQUESTED : 0);
	cpu->requested = fe_options.cpu;
	cpu->in_effect = bank->cpu >= 0 ? bank->cpu : fe_cpu;
}

static void describe_series(unsigned int i, const struct fe_tally *tally)
{
	struct fe_bank_series *series = &head.series[i];

	series->kind = task->series[i];
	series->max_cpu = tally->max_cpu;
	series->stats = tally->stats;
	series->lost = tally->lost;
	series->missed = tally->missed;
	series->gaps = tally->gaps;
	memcpy(series->rises, tally->rises, sizeof(series->rises));
	series->max_at_ns = ktime_to_ns(tally->max_at);
	series->first = series->buckets = 0;
	if (tally->stats.count == 0)
		return;
	series->first = fe_bucket(tally->stats.min);
	series->buckets = fe_bucket(tally->stats.max) - series->first + 1;
}

static void describe_bank(const struct fe_bank *bank)
{
	unsigned int i;

	head.bytes = sizeof(head);
	for (i = 0; i < FE_BANK_COUNTERS; i++) {
		head.counted[i] = bank->counters[i];
		head.counted_since_load[i] = fe_recorder_counted(i) + bank->counters[i];
	}
	for (i = 0; i < task->series_count; i++) {
		describe_series(i, &bank->series[i]);
		head.bytes += head.series[i].buckets * sizeof(u32);
	}
}

static ssize_t copy_bank(char __user *to, const struct fe_bank *bank)
{
	unsigned int i;

	if (copy_to_user(to, &head, sizeof(head)))
		return -EFAULT;
	to += sizeof(head);
	for (i = 0; i < head.series_count; i++) {
		const struct fe_bank_series *series = &head.series[i];

		if (copy_to_user(to, bank->series[i].buckets + series->first, series->buckets * sizeof(u32)))
			return -EFAULT;
		to += series->buckets * sizeof(u32);
	}
	return head.bytes;
}

static ssize_t next_bank(char __user *to)
{
	ktime_t begin, end;
	struct fe_bank *bank = fe_recorder_switch(&begin, &end);
	ssize_t result;

	head.begin_ns = ktime_to_ns(begin);
	head.end_ns = ktime_to_ns(end);
	if (!head.stopped) {
		read_task_settings();
		describe_cpu(bank);
	}
	describe_bank(bank);
	result = copy_bank(to, bank);
	fe_recorder_clear(bank);
	return result;
}

static ssize_t device_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	ssize_t result;

	if (size < FE_BANK_BYTES)
		return -EMSGSIZE;
	if (mutex_lock_interruptible(&reading))
		return -ERESTARTSYS;
	result = next_bank(to);
	mutex_unlock(&reading);
	return result;
}

static ssize_t device_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	char word[8] = "";

	if (size >= sizeof(word) || copy_from_user(word, from, size))
		return -EINVAL;
	if (strcmp(strim(word), FE_BANK_STOP))
		return -EINVAL;
	if (mutex_lock_interruptible(&reading))
		return -ERESTARTSYS;
	if (!head.stopped)
		read_task_settings();
	fe_stop();
	head.stopped = 1;
	mutex_unlock(&reading);
	return size;
}

static int device_open(struct inode *inode, struct file *file)
{
	return atomic_cmpxchg(&readers, 0, 1) ? -EBUSY : 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	atomic_set(&readers, 0);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.read = device_read,
	.write = device_write,
	.release = device_release,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "fastenough",
	.fops = &operations,
	.mode = 0600,
};

int fe_device_create(const struct fe_task *running)
{
	task = running;
	describe_task();
	return misc_register(&device);
}

void fe_device_destroy(void)
{
	misc_deregister(&device);
}
