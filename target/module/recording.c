// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /dev/fastenough: reading it yields the recording of format/recording-1.schema.json.  A recording
 * begins when the device is opened for reading, blocks until each interval is over, and ends after
 * duration_ms or when "stop" is written.  Nothing here runs in the task's context.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "fastenough.h"

#define FIXED_TEXT 8192 /* holds every line but for its buckets */
#define BUCKET_TEXT 20  /* longest: "[-56319,4294967295]," */

struct text {
	char *data; /* room for the longest line there can be, so that no interval is lost for want of memory */
	size_t length, room, given;
};

struct total {
	struct fe_stats stats;
	u64 lost, missed;
};

struct recording {
	struct mutex lock;
	struct text text;
	ktime_t begin, interval_begin;
	u64 seq;
	bool has_head, has_end;
	struct total series[FE_MAX_SERIES];
	u64 counters[FE_MAX_COUNTERS];
};

static const struct fe_task *task;
static atomic_t readers = ATOMIC_INIT(0);
static bool stopping;
static DECLARE_WAIT_QUEUE_HEAD(stop_queue);

/* Text */

static bool text_create(struct text *text)
{
	size_t series = 0;

	while (series < FE_MAX_SERIES && task->series[series])
		series++;
	text->room = FIXED_TEXT + series * 2 * FE_BUCKETS * BUCKET_TEXT;
	text->data = vmalloc(text->room);
	return text->data;
}

static void text_clear(struct text *text)
{
	text->length = text->given = 0;
}

static __printf(2, 3) void put(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text->length += vscnprintf(text->data + text->length, text->room - text->length, format, args);
	va_end(args);
}

static void put_u128(struct text *text, u64 lo, u64 hi)
{
	u32 limbs[4] = { hi >> 32, hi, lo >> 32, lo };
	char digits[40];
	int at = sizeof(digits) - 1, i;

	digits[at] = '\0';
	do {
		u32 rest = 0;

		for (i = 0; i < 4; i++)
			limbs[i] = div_u64_rem(((u64)rest << 32) | limbs[i], 10, &rest);
		digits[--at] = '0' + rest;
	} while (limbs[0] | limbs[1] | limbs[2] | limbs[3]);
	put(text, "\"%s\"", digits + at);
}

static void put_instant(struct text *text, const char *name, ktime_t at)
{
	put(text, "\"%s\":{\"mono_ns\":%lld,\"wall_ns\":%lld}", name, ktime_to_ns(at),
	    ktime_to_ns(ktime_mono_to_real(at)));
}

static void put_counters(struct text *text, const u64 *counters)
{
	unsigned int i;

	put(text, ",\"counters\":{");
	for (i = 0; i < FE_MAX_COUNTERS && task->counters[i]; i++)
		put(text, "%s\"%s\":%llu", i ? "," : "", task->counters[i], counters[i]);
	put(text, "}");
}

static void put_stats(struct text *text, const struct fe_stats *stats)
{
	if (stats->count)
		put(text, ",\"min\":%lld,\"max\":%lld", (s64)stats->min, (s64)stats->max);
	put(text, ",\"sum\":%lld,\"sum_sq\":", (s64)stats->sum);
	put_u128(text, stats->sum_sq_lo, stats->sum_sq_hi);
}

/* Head */

static u64 clock_cost_ns(void)
{
	ktime_t begin = ktime_get();
	unsigned int i;

	for (i = 0; i < 999; i++)
		ktime_get();
	return div_u64(ktime_to_ns(ktime_sub(ktime_get(), begin)), 1000);
}

static void put_parameters(struct text *text)
{
	put(text, ",\"parameters\":{\"task\":\"%s\",\"method\":\"%s\",\"cpu\":%d", task->name, task->method,
	    fe_options.cpu);
	if (task->needs_period)
		put(text, ",\"period_ns\":%lu", fe_options.period_ns);
	if (task->needs_output)
		put(text, ",\"chip\":\"%s\",\"out_line\":%d", fe_options.chip, fe_options.out_line);
	if (task->needs_input)
		put(text, ",\"in_line\":%d", fe_options.in_line);
	put(text, "}");
}

static void put_series_kinds(struct text *text)
{
	unsigned int i;

	put(text, ",\"series\":[");
	for (i = 0; i < FE_MAX_SERIES && task->series[i]; i++) {
		const struct fe_series_kind *kind = task->series[i];

		put(text, "%s{\"id\":%u,\"name\":\"%s\",\"unit\":\"ns\",\"clock\":\"monotonic\",\"from\":\"%s\",\"to\":\"%s\",\"k\":%d",
		    i ? "," : "", i, kind->name, kind->from, kind->to, FE_K);
		if (kind->periodic)
			put(text, ",\"period_ns\":%lu", fe_options.period_ns);
		if (fe_options.cpu >= 0)
			put(text, ",\"cpu\":%d", fe_options.cpu);
		put(text, "}");
	}
	put(text, "]");
}

static void put_settings(struct text *text)
{
	struct fe_setting settings[FE_MAX_SETTINGS];
	int count = task->settings ? task->settings(settings) : 0, i;

	put(text, ",\"settings\":[");
	for (i = 0; i < count; i++)
		put(text, "%s{\"name\":\"%s\",\"asked\":%lld,\"granted\":%lld}", i ? "," : "", settings[i].name,
		    settings[i].asked, settings[i].granted);
	put(text, "]");
}

static void put_head(struct text *text, const struct recording *recording)
{
	put(text, "{\"type\":\"head\",\"format\":\"fastenough-recording\",\"version\":1,"
	    "\"tool\":{\"name\":\"fastenough.ko\",\"version\":\"" FE_MODULE_VERSION "\"},"
	    "\"run_id\":\"%s\",\"probe\":\"%s\",\"implementation\":\"linux-kernel\"", fe_options.run_id, task->probe);
	put_parameters(text);
	put_series_kinds(text);
	put_settings(text);
	put(text, ",\"cost\":{\"clock_read_ns\":%llu},\"interval_ns\":%llu,", clock_cost_ns(),
	    (u64)fe_options.interval_ms * NSEC_PER_MSEC);
	put_instant(text, "begin", recording->begin);
	put(text, ",\"marks\":[\"self-measured\"]}\n");
}

/* Interval */

static u32 last_bucket(const struct fe_tally *tally, bool negative)
{
	s64 end = negative ? tally->stats.min : tally->stats.max;

	if (tally->stats.count == 0 || (end < 0) != negative)
		return 0;
	return fe_hist_index(fe_magnitude(end), FE_K);
}

static void put_bucket(struct text *text, const char **separator, int index, u32 count)
{
	if (count == 0)
		return;
	put(text, "%s[%d,%u]", *separator, index, count);
	*separator = ",";
}

static void put_buckets(struct text *text, const struct fe_tally *tally)
{
	u32 lowest = last_bucket(tally, true), highest = last_bucket(tally, false), i;
	const char *separator = "";

	put(text, ",\"buckets\":[");
	for (i = lowest; i > 0; i--)
		put_bucket(text, &separator, -(int)i, tally->buckets[1][i]);
	for (i = 0; i <= highest; i++)
		put_bucket(text, &separator, i, tally->buckets[0][i]);
	put(text, "]");
}

static void put_interval_series(struct text *text, unsigned int id, const struct fe_tally *tally)
{
	put(text, "%s{\"id\":%u,\"count\":%llu,\"lost\":%llu,\"missed\":%llu", id ? "," : "", id,
	    (u64)tally->stats.count, tally->lost, tally->missed);
	put_stats(text, &tally->stats);
	put_buckets(text, tally);
	put(text, "}");
}

static void put_interval(struct text *text, const struct recording *recording, const struct fe_bank *bank, ktime_t end)
{
	unsigned int i;

	put(text, "{\"type\":\"interval\",\"seq\":%llu,", recording->seq);
	put_instant(text, "begin", recording->interval_begin);
	put(text, ",");
	put_instant(text, "end", end);
	put(text, ",\"series\":[");
	for (i = 0; i < FE_MAX_SERIES && task->series[i]; i++)
		put_interval_series(text, i, &bank->series[i]);
	put(text, "]");
	put_counters(text, bank->counters);
	put(text, "}\n");
}

static void put_maximum(struct text *text, unsigned int id, const struct fe_tally *tally)
{
	put(text, "{\"type\":\"event\",\"kind\":\"max\",");
	put_instant(text, "at", tally->max_at);
	put(text, ",\"series\":%u,\"cpu\":%d,\"value\":%lld}\n", id, tally->max_cpu, (s64)tally->stats.max);
}

static void add_tally(struct total *total, const struct fe_tally *tally)
{
	fe_stats_merge(&total->stats, &tally->stats);
	total->lost += tally->lost;
	total->missed += tally->missed;
}

static bool is_new_maximum(const struct total *total, const struct fe_tally *tally)
{
	return tally->stats.count && (total->stats.count == 0 || tally->stats.max > total->stats.max);
}

static void add_interval(struct recording *recording, const struct fe_bank *bank)
{
	ktime_t end = ktime_get();
	unsigned int i;

	put_interval(&recording->text, recording, bank, end);
	for (i = 0; i < FE_MAX_SERIES && task->series[i]; i++) {
		if (is_new_maximum(&recording->series[i], &bank->series[i]))
			put_maximum(&recording->text, i, &bank->series[i]);
		add_tally(&recording->series[i], &bank->series[i]);
	}
	for (i = 0; i < FE_MAX_COUNTERS; i++)
		recording->counters[i] += bank->counters[i];
	recording->interval_begin = end;
	recording->seq++;
}

/* End */

static void put_end(struct text *text, const struct recording *recording)
{
	unsigned int i;

	put(text, "{\"type\":\"end\",\"outcome\":\"completed\",\"reasons\":[],");
	put_instant(text, "at", recording->interval_begin);
	put(text, ",\"series\":[");
	for (i = 0; i < FE_MAX_SERIES && task->series[i]; i++) {
		const struct total *total = &recording->series[i];

		put(text, "%s{\"id\":%u,\"taken\":%llu,\"stored\":%llu,\"lost\":%llu,\"missed\":%llu", i ? "," : "", i,
		    (u64)total->stats.count + total->lost, (u64)total->stats.count, total->lost, total->missed);
		put_stats(text, &total->stats);
		put(text, "}");
	}
	put(text, "]");
	put_counters(text, recording->counters);
	put(text, ",\"events_dropped\":0}\n");
}

/* The device */

static bool is_over(const struct recording *recording)
{
	return READ_ONCE(stopping) ||
	       (fe_options.duration_ms &&
		ktime_ms_delta(ktime_get(), recording->begin) >= fe_options.duration_ms);
}

static int wait_for_interval(const struct recording *recording)
{
	ktime_t end = ktime_add_ms(recording->interval_begin, fe_options.interval_ms);
	s64 rest_ms;
	long left;

	if (fe_options.duration_ms)
		end = min(end, ktime_add_ms(recording->begin, fe_options.duration_ms));
	rest_ms = ktime_ms_delta(end, ktime_get());
	if (rest_ms < 0)
		return 0;
	left = wait_event_interruptible_timeout(stop_queue, READ_ONCE(stopping), msecs_to_jiffies(rest_ms) + 1);
	return left < 0 ? left : 0;
}

static int next_interval(struct recording *recording)
{
	struct fe_bank *bank;
	bool over;
	int error = wait_for_interval(recording);

	if (error)
		return error;
	over = is_over(recording);
	bank = fe_recorder_swap();
	add_interval(recording, bank);
	fe_recorder_clear(bank);
	if (over) {
		put_end(&recording->text, recording);
		recording->has_end = true;
	}
	return 0;
}

static int next_text(struct recording *recording)
{
	text_clear(&recording->text);
	if (recording->has_head)
		return next_interval(recording);
	put_head(&recording->text, recording);
	recording->has_head = true;
	return 0;
}

static ssize_t give(struct text *text, char __user *to, size_t size)
{
	size = min(size, text->length - text->given);
	if (copy_to_user(to, text->data + text->given, size))
		return -EFAULT;
	text->given += size;
	return size;
}

static ssize_t device_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	struct recording *recording = file->private_data;
	ssize_t result = 0;

	if (!recording)
		return -EBADF;
	if (mutex_lock_interruptible(&recording->lock))
		return -ERESTARTSYS;
	if (recording->text.given == recording->text.length && !recording->has_end)
		result = next_text(recording);
	if (result == 0)
		result = give(&recording->text, to, size);
	mutex_unlock(&recording->lock);
	return result;
}

static ssize_t device_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	char word[8] = "";

	if (size >= sizeof(word) || copy_from_user(word, from, size))
		return -EINVAL;
	if (strcmp(strim(word), "stop"))
		return -EINVAL;
	WRITE_ONCE(stopping, true);
	wake_up_interruptible(&stop_queue);
	return size;
}

static struct recording *begin_recording(void)
{
	struct recording *recording = kzalloc(sizeof(*recording), GFP_KERNEL);

	if (!recording)
		return NULL;
	if (!text_create(&recording->text)) {
		kfree(recording);
		return NULL;
	}
	mutex_init(&recording->lock);
	WRITE_ONCE(stopping, false);
	fe_recorder_clear(fe_recorder_swap());
	recording->begin = recording->interval_begin = ktime_get();
	return recording;
}

static int device_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL; /* misc put its own pointer there */
	if (!(file->f_mode & FMODE_READ))
		return 0;
	if (atomic_cmpxchg(&readers, 0, 1)) {
		pr_err("the device is being read already: one recording at a time\n");
		return -EBUSY;
	}
	file->private_data = begin_recording();
	if (!file->private_data) {
		atomic_set(&readers, 0);
		return -ENOMEM;
	}
	return 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	struct recording *recording = file->private_data;

	if (!recording)
		return 0;
	vfree(recording->text.data);
	kfree(recording);
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

int fe_recording_create(const struct fe_task *running)
{
	task = running;
	return misc_register(&device);
}

void fe_recording_destroy(void)
{
	misc_deregister(&device);
}
