// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fastenough_oob_gpio.ko: GPIO lines of a chip for threads of the EVL core, as /dev/fastenough-oob/LABEL.  The chip's driver
 * must support the interrupt pipeline (IRQCHIP_PIPELINE_SAFE).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/gpio/consumer.h>
#include <linux/gpio/driver.h>
#include <linux/gpio/machine.h>
#include <linux/interrupt.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <evl/clock.h>
#include <evl/file.h>
#include <evl/sched.h>
#include <evl/wait.h>

#include "oob_gpio.h"

#define EDGE_QUEUE_SIZE 1024 /* a power of two */

static char *chip = "";
module_param(chip, charp, 0444);
MODULE_PARM_DESC(chip, "label of the GPIO chip");

static struct gpio_chip *lines;

struct line {
	struct evl_file file;
	struct gpio_desc *desc;
	struct evl_wait_queue wait; /* its lock covers what follows */
	struct fe_oob_edge edges[EDGE_QUEUE_SIZE];
	u32 noted, taken, dropped;
	int irq;
	bool output, was_input;
};

static void queue_edge(struct line *line, u64 at_ns, u32 high)
{
	if (line->noted - line->taken == EDGE_QUEUE_SIZE) {
		line->dropped++;
		return;
	}
	line->edges[line->noted++ % EDGE_QUEUE_SIZE] = (struct fe_oob_edge){ at_ns, high, line->dropped };
	line->dropped = 0;
}

/* Out of band. */
static irqreturn_t handle_edge(int irq, void *data)
{
	struct line *line = data;
	u64 at_ns = ktime_to_ns(evl_ktime_monotonic());
	u32 high = gpiod_get_raw_value(line->desc);
	unsigned long flags;

	raw_spin_lock_irqsave(&line->wait.wchan.lock, flags);
	queue_edge(line, at_ns, high);
	evl_flush_wait_locked(&line->wait, 0);
	raw_spin_unlock_irqrestore(&line->wait.wchan.lock, flags);
	evl_schedule();
	return IRQ_HANDLED;
}

static bool dequeue_edge(struct line *line, struct fe_oob_edge *edge)
{
	if (line->noted == line->taken)
		return false;
	*edge = line->edges[line->taken++ % EDGE_QUEUE_SIZE];
	return true;
}

static ssize_t line_oob_read(struct file *file, char __user *to, size_t size)
{
	struct line *line = file->private_data;
	struct fe_oob_edge edge;
	int error;

	if (line->irq <= 0 || size < sizeof(edge))
		return -EINVAL;
	error = evl_wait_event(&line->wait, dequeue_edge(line, &edge));
	if (error)
		return error;
	return raw_copy_to_user(to, &edge, sizeof(edge)) ? -EFAULT : sizeof(edge);
}

static ssize_t line_oob_write(struct file *file, const char __user *from, size_t size)
{
	struct line *line = file->private_data;
	u32 high;

	if (!line->output || size != sizeof(high))
		return -EINVAL;
	if (raw_copy_from_user(&high, from, sizeof(high)))
		return -EFAULT;
	gpiod_set_raw_value(line->desc, high);
	return sizeof(high);
}

static int begin_input(struct line *line)
{
	int irq, error = gpiod_direction_input(line->desc);

	if (error)
		return error;
	irq = gpiod_to_irq(line->desc);
	if (irq < 0)
		return irq;
	error = request_irq(irq, handle_edge, IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING | IRQF_OOB, KBUILD_MODNAME, line);
	if (!error)
		line->irq = irq;
	return error;
}

static int begin_output(struct line *line, bool high)
{
	line->was_input = gpiod_get_direction(line->desc) == 1;
	line->output = true;
	return gpiod_direction_output_raw(line->desc, high);
}

static void release_line(struct line *line)
{
	if (line->irq > 0)
		free_irq(line->irq, line);
	if (line->output && line->was_input)
		gpiod_direction_input(line->desc);
	if (line->desc)
		gpiochip_free_own_desc(line->desc);
	line->desc = NULL;
	line->irq = 0;
	line->output = false;
}

static long request_line(struct line *line, const void __user *from)
{
	struct fe_oob_request request;
	struct gpio_desc *desc;
	int error;

	if (copy_from_user(&request, from, sizeof(request)))
		return -EFAULT;
	if (line->desc || request.offset >= lines->ngpio)
		return -EINVAL;
	desc = gpiochip_request_own_desc(lines, request.offset, KBUILD_MODNAME, GPIO_ACTIVE_HIGH, GPIOD_ASIS);
	if (IS_ERR(desc))
		return PTR_ERR(desc);
	line->desc = desc;
	error = request.output ? begin_output(line, request.high) : begin_input(line);
	if (error)
		release_line(line);
	return error;
}

static long line_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct line *line = file->private_data;
	u32 __user *value = (u32 __user *)argument;

	switch (command) {
	case FE_OOB_LINES:
		return put_user((u32)lines->ngpio, value);
	case FE_OOB_REQUEST:
		return request_line(line, (const void __user *)argument);
	case FE_OOB_LEVEL:
		return line->desc ? put_user((u32)gpiod_get_raw_value(line->desc), value) : -EINVAL;
	default:
		return -ENOTTY;
	}
}

static int line_open(struct inode *inode, struct file *file)
{
	struct line *line = kzalloc(sizeof(*line), GFP_KERNEL);
	int error;

	if (!line)
		return -ENOMEM;
	evl_init_wait(&line->wait, &evl_mono_clock, EVL_WAIT_PRIO);
	error = evl_open_file(&line->file, file);
	if (error) {
		evl_destroy_wait(&line->wait);
		kfree(line);
		return error;
	}
	file->private_data = line;
	return 0;
}

/* evl_release_file() waits until all calls of the core have ended. */
static int line_release(struct inode *inode, struct file *file)
{
	struct line *line = file->private_data;

	evl_flush_wait(&line->wait, EVL_T_RMID);
	evl_schedule();
	evl_release_file(&line->file);
	release_line(line);
	evl_destroy_wait(&line->wait);
	kfree(line);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = line_open,
	.release = line_release,
	.unlocked_ioctl = line_ioctl,
	.oob_read = line_oob_read,
	.oob_write = line_oob_write,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &operations,
	.mode = 0600,
};

static int has_label(struct gpio_chip *found, void *label)
{
	return found->label && !strcmp(found->label, label);
}

static int __init begin(void)
{
	int error;

	lines = gpiochip_find(chip, has_label);
	if (!lines || lines->can_sleep) {
		pr_err("chip=%s: %s\n", chip, lines ? "its lines may sleep" : "no GPIO chip has this label");
		return lines ? -EINVAL : -ENODEV;
	}
	device.nodename = kasprintf(GFP_KERNEL, FE_OOB_FOLDER "/%s", chip);
	if (!device.nodename)
		return -ENOMEM;
	error = misc_register(&device);
	if (error)
		kfree(device.nodename);
	return error;
}

static void __exit end(void)
{
	misc_deregister(&device);
	kfree(device.nodename);
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("GPIO lines for programs of EVL");
