// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A GPIO chip that cannot read back its outputs: they read as 0, whatever they are.  Line 0 is an input with an
 * interrupt, moved by writing its level into the parameter "input"; line 1 is the output, whose true level is in the
 * parameter "output".
 */
#include <linux/gpio/driver.h>
#include <linux/irq.h>
#include <linux/module.h>
#include <linux/version.h>

enum { INPUT, OUTPUT, LINES };

static struct gpio_chip chip;
static int irq, input_level, output_level;

static int set_input(const char *text, const struct kernel_param *parameter)
{
	int error = param_set_int(text, parameter);
	unsigned long flags;

	if (error || !irq)
		return error;
	local_irq_save(flags);
	generic_handle_irq(irq);
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops input_ops = {
	.set = set_input,
	.get = param_get_int,
};
module_param_cb(input, &input_ops, &input_level, 0644);
module_param_named(output, output_level, int, 0444);
static char *label = "blind";
module_param(label, charp, 0444);

static int get(struct gpio_chip *asked, unsigned int line)
{
	return line == INPUT ? input_level : 0;
}

static int get_direction(struct gpio_chip *asked, unsigned int line)
{
	return line == INPUT ? GPIO_LINE_DIRECTION_IN : GPIO_LINE_DIRECTION_OUT;
}

static int input(struct gpio_chip *asked, unsigned int line)
{
	return 0;
}

static int output(struct gpio_chip *asked, unsigned int line, int level)
{
	output_level = level;
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
static int set(struct gpio_chip *asked, unsigned int line, int level)
{
	output_level = level;
	return 0;
}
#else
static void set(struct gpio_chip *asked, unsigned int line, int level)
{
	output_level = level;
}
#endif

static int to_irq(struct gpio_chip *asked, unsigned int line)
{
	return line == INPUT ? irq : -ENXIO;
}

static int __init blind_init(void)
{
	int error;

	irq = irq_alloc_desc(0);
	if (irq < 0)
		return irq;
	irq_set_chip_and_handler(irq, &dummy_irq_chip, handle_simple_irq);
	irq_modify_status(irq, IRQ_NOREQUEST, IRQ_NOPROBE);
	chip = (struct gpio_chip){
		.label = label,
		.owner = THIS_MODULE,
		.base = -1,
		.ngpio = LINES,
		.get = get,
		.set = set,
		.get_direction = get_direction,
		.direction_input = input,
		.direction_output = output,
		.to_irq = to_irq,
	};
	error = gpiochip_add_data(&chip, NULL);
	if (error)
		irq_free_desc(irq);
	return error;
}

static void __exit blind_exit(void)
{
	gpiochip_remove(&chip);
	irq_free_desc(irq);
}

module_init(blind_init);
module_exit(blind_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a GPIO chip that cannot read back its outputs");
