// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests GPIO lines by chip label and offset, with a message for each failure. */
#include <linux/err.h>
#include <linux/gpio/consumer.h>
#include <linux/gpio/machine.h>
#include <linux/platform_device.h>
#include <linux/string.h>

#include "fastenough.h"

#define DEVICE "fastenough"

struct gpio_desc *fe_input, *fe_output;
int fe_output_level;

static struct platform_device *device;
static bool output_was_input;

static struct gpiod_lookup_table lines = {
	.dev_id = DEVICE,
	.table = { {}, {}, {} },
};

static int explain(const char *what, int offset, int error)
{
	switch (error) {
	case -EPROBE_DEFER:
		fe_refuse("%s: no GPIO chip is labelled '%s' (gpiodetect lists the labels)", what,
			  fe_options.chip);
		return -ENODEV;
	case -EINVAL:
		fe_refuse("%s: chip '%s' has no line %d", what, fe_options.chip, offset);
		return -EINVAL;
	case -EBUSY:
		fe_refuse("%s: line %d of '%s' is in use (see gpioinfo)", what, offset, fe_options.chip);
		return -EBUSY;
	default:
		fe_refuse("%s: line %d of '%s' is not available: error %d", what, offset, fe_options.chip, error);
		return error;
	}
}

static int check_names(const struct fe_task *task)
{
	if (!*fe_options.chip) {
		fe_refuse("%s needs a GPIO chip: give its label as chip=", task->name);
		return -EINVAL;
	}
	if ((task->needs_input && fe_options.in_line < 0) || fe_options.out_line < 0) {
		fe_refuse("%s needs %sout_line=", task->name, task->needs_input ? "in_line= and " : "");
		return -EINVAL;
	}
	if (task->needs_input && fe_options.in_line == fe_options.out_line) {
		fe_refuse("in_line and out_line must be two lines, not both %d", fe_options.in_line);
		return -EINVAL;
	}
	return 0;
}

/* The tasks access pins with interrupts off: a chip whose bus driver sleeps would hang the machine. */
static int get_line(const char *what, int offset, enum gpiod_flags flags, struct gpio_desc **line)
{
	struct gpio_desc *found = gpiod_get(&device->dev, what, flags);

	if (IS_ERR(found))
		return explain(what, offset, PTR_ERR(found));
	if (gpiod_cansleep(found)) {
		fe_refuse("%s: chip '%s' may sleep, its lines cannot be used in an interrupt: use a chip on the processor's own bus, or the user-space task",
			  what, fe_options.chip);
		gpiod_put(found);
		return -EINVAL;
	}
	*line = found;
	return 0;
}

static int get_lines(const struct fe_task *task)
{
	int error;

	fe_output_level = 0;
	if (task->needs_input) {
		error = get_line("in", fe_options.in_line, GPIOD_IN, &fe_input);
		if (error)
			return error;
		fe_output_level = gpiod_get_raw_value(fe_input);
		if (fe_output_level < 0)
			return explain("in", fe_options.in_line, fe_output_level);
	}
	error = get_line("out", fe_options.out_line, GPIOD_ASIS, &fe_output);
	if (error)
		return error;
	output_was_input = gpiod_get_direction(fe_output) == 1;
	error = gpiod_direction_output_raw(fe_output, fe_output_level);
	return error ? explain("out", fe_options.out_line, error) : 0;
}

int fe_pins_get(const struct fe_task *task)
{
	int error;

	if (!task->needs_output)
		return 0;
	error = check_names(task);
	if (error)
		return error;
	lines.table[0] = (struct gpiod_lookup)GPIO_LOOKUP(fe_options.chip, fe_options.out_line, "out", GPIO_ACTIVE_HIGH);
	if (task->needs_input)
		lines.table[1] =
			(struct gpiod_lookup)GPIO_LOOKUP(fe_options.chip, fe_options.in_line, "in", GPIO_ACTIVE_HIGH);
	gpiod_add_lookup_table(&lines);
	device = platform_device_register_simple(DEVICE, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device)) {
		error = PTR_ERR(device);
		device = NULL;
		gpiod_remove_lookup_table(&lines);
		return error;
	}
	error = get_lines(task);
	if (error)
		fe_pins_put();
	return error;
}

int fe_pins_irq(void)
{
	int irq = gpiod_to_irq(fe_input);

	if (irq < 0)
		fe_refuse("line %d of '%s' cannot raise interrupts: error %d", fe_options.in_line, fe_options.chip, irq);
	return irq;
}

void fe_pins_put(void)
{
	if (!device)
		return;
	if (fe_output) {
		if (output_was_input)
			gpiod_direction_input(fe_output);
		gpiod_put(fe_output);
	}
	if (fe_input)
		gpiod_put(fe_input);
	fe_input = fe_output = NULL;
	platform_device_unregister(device);
	device = NULL;
	gpiod_remove_lookup_table(&lines);
}
