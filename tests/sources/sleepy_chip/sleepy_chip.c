// SPDX-License-Identifier: GPL-2.0-or-later
/* A GPIO chip that sleeps, as one behind I2C does: what an interrupt must not touch. */
#include <linux/gpio/driver.h>
#include <linux/module.h>

static struct gpio_chip chip;

static int get(struct gpio_chip *asked, unsigned int line)
{
	return 0;
}

static void set(struct gpio_chip *asked, unsigned int line, int level)
{
}

static int input(struct gpio_chip *asked, unsigned int line)
{
	return 0;
}

static int output(struct gpio_chip *asked, unsigned int line, int level)
{
	return 0;
}

static int __init sleepy_init(void)
{
	chip = (struct gpio_chip){
		.label = "sleepy",
		.owner = THIS_MODULE,
		.base = -1,
		.ngpio = 4,
		.can_sleep = true,
		.get = get,
		.set = set,
		.direction_input = input,
		.direction_output = output,
	};
	return gpiochip_add_data(&chip, NULL);
}

static void __exit sleepy_exit(void)
{
	gpiochip_remove(&chip);
}

module_init(sleepy_init);
module_exit(sleepy_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a GPIO chip that sleeps");
