// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fastenough_inject.ko: injects known latencies with interrupts off, to test whether they are detected.
 *
 * A timer interrupt slightly before a due time of the delayed tasks keeps the CPU, with interrupts off, until the
 * requested time after it.  /dev/fastenough_inject returns a line for each injection so far:
 * asked_ns,injected_ns,due_mono_ns.  If the interrupt itself was late, nothing was injected, and injected_ns is 0.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#define MAX_SIZES 16
#define MAX_INJECTIONS 4096
#define LONGEST_NS 200000000ul /* below the limits of the kernel's watchdogs */
#define AHEAD_NS (100 * NSEC_PER_MSEC)
#define LINE_TEXT 64
#define MODE HRTIMER_MODE_ABS_PINNED_HARD

static ulong sizes_ns[MAX_SIZES];
static int sizes;
module_param_array(sizes_ns, ulong, &sizes, 0444);
MODULE_PARM_DESC(sizes_ns, "delays to inject in turn");
static uint each = 10;
module_param(each, uint, 0444);
MODULE_PARM_DESC(each, "number of injections of each size");
static int cpu;
module_param(cpu, int, 0444);
MODULE_PARM_DESC(cpu, "CPU to keep busy");
static unsigned long long begin_ns;
module_param(begin_ns, ullong, 0444);
MODULE_PARM_DESC(begin_ns, "a due time of the tasks to be delayed (CLOCK_MONOTONIC)");
static ulong interval_ns = 100000000;
module_param(interval_ns, ulong, 0444);
MODULE_PARM_DESC(interval_ns, "time between injections: a multiple of the tasks' period");
static ulong lead_ns = 300000;
module_param(lead_ns, ulong, 0444);
MODULE_PARM_DESC(lead_ns, "time by which the interrupt precedes a due time");

static bool explain;
module_param(explain, bool, 0444);
MODULE_PARM_DESC(explain, "stay loaded when refused; the parameter refused has the reason");
/* Output only: with explain=1 the bench reads it. */
static char refused[160];
module_param_string(refused, refused, sizeof(refused), 0444);
MODULE_PARM_DESC(refused, "reason for the refusal (read-only)");

static struct {
	u64 injected_ns;
	ktime_t due;
} injections[MAX_INJECTIONS];

static unsigned int total, done;
static ktime_t due;
static struct hrtimer timer;

static void spin_until(ktime_t end)
{
	while (ktime_before(ktime_get(), end))
		cpu_relax();
}

static enum hrtimer_restart inject(struct hrtimer *expired)
{
	u64 injected_ns = 0;

	if (ktime_before(ktime_get(), due)) {
		spin_until(ktime_add_ns(due, sizes_ns[done % sizes]));
		injected_ns = ktime_to_ns(ktime_sub(ktime_get(), due));
	}
	injections[done].injected_ns = injected_ns;
	injections[done].due = due;
	smp_store_release(&done, done + 1);
	if (done == total)
		return HRTIMER_NORESTART;
	due = ktime_add_ns(due, interval_ns);
	hrtimer_set_expires(expired, ktime_sub_ns(due, lead_ns));
	return HRTIMER_RESTART;
}

static void arm(void *unused)
{
	hrtimer_start(&timer, ktime_sub_ns(due, lead_ns), MODE);
}

static ssize_t device_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	unsigned int count = smp_load_acquire(&done), i;
	size_t length = 0;
	char *text = kvmalloc((count + 1) * LINE_TEXT, GFP_KERNEL);
	ssize_t result;

	if (!text)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		length += scnprintf(text + length, LINE_TEXT, "%lu,%llu,%lld\n", sizes_ns[i % sizes],
				    injections[i].injected_ns, ktime_to_ns(injections[i].due));
	result = simple_read_from_buffer(to, size, offset, text, length);
	kvfree(text);
	return result;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = device_read,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &operations,
	.mode = 0600,
};

static __printf(1, 2) void refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vscnprintf(refused, sizeof(refused), format, args);
	va_end(args);
	pr_err("%s\n", refused);
}

static int check(void)
{
	int i;

	for (i = 0; i < sizes; i++)
		if (sizes_ns[i] == 0 || sizes_ns[i] > LONGEST_NS || 2 * (sizes_ns[i] + lead_ns) > interval_ns) {
			refuse("sizes_ns=%lu: choose up to %lu, and interval_ns at least twice as long with lead_ns",
			       sizes_ns[i], LONGEST_NS);
			return -EINVAL;
		}
	if (sizes == 0 || each == 0 || each > MAX_INJECTIONS / sizes) {
		refuse("each=%u of %d sizes: choose at least one size and at most %d injections", each, sizes,
		       MAX_INJECTIONS);
		return -EINVAL;
	}
	if (cpu < 0 || cpu >= (int)nr_cpu_ids || !cpu_online(cpu)) {
		refuse("cpu=%d is not online: choose one that is", cpu);
		return -EINVAL;
	}
	return 0;
}

/* The first due time that is at least AHEAD_NS ahead. */
static ktime_t first_due(void)
{
	u64 earliest = ktime_get_ns() + AHEAD_NS;

	if (begin_ns == 0 || begin_ns >= earliest)
		return ns_to_ktime(begin_ns ? begin_ns : earliest);
	return ns_to_ktime(begin_ns + (div64_ul(earliest - begin_ns, interval_ns) + 1) * interval_ns);
}

static int start(void)
{
	int error = check();

	if (error)
		return error;
	total = each * sizes;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&timer, inject, CLOCK_MONOTONIC, MODE);
#else
	hrtimer_init(&timer, CLOCK_MONOTONIC, MODE);
	timer.function = inject;
#endif
	error = misc_register(&device);
	if (error)
		return error;
	due = first_due();
	error = smp_call_function_single(cpu, arm, NULL, 1);
	if (error)
		misc_deregister(&device);
	return error;
}

static int __init inject_init(void)
{
	int error;

	*refused = '\0';
	error = start();
	if (error && !*refused)
		refuse("the injector cannot start: error %d", error);
	return explain ? 0 : error;
}

static void __exit inject_exit(void)
{
	if (*refused)
		return;
	misc_deregister(&device);
	hrtimer_cancel(&timer);
}

module_init(inject_init);
module_exit(inject_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION("0.2.0");
MODULE_DESCRIPTION("Known latencies, injected with interrupts off");
