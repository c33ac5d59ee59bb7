// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fastenough_rtdm_gpio.ko: the lines of a GPIO chip as RTDM devices, /dev/rtdm/LABEL/gpioN, for chips without a driver of
 * Xenomai.  The chip's driver must support the interrupt pipeline (IRQCHIP_PIPELINE_SAFE).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <rtdm/gpio.h>

#define SUBCLASS 0x6665 /* of this module, which removes all chips of the subclass */

static char *chip = "";
module_param(chip, charp, 0444);
MODULE_PARM_DESC(chip, "label of the GPIO chip");

static int __init begin(void)
{
	int error = rtdm_gpiochip_find(NULL, chip, SUBCLASS);

	if (error)
		pr_err("chip=%s: %s\n", chip, error == -ENODEV ? "no GPIO chip has this label" : "RTDM refused it");
	return error;
}

static void __exit end(void)
{
	rtdm_gpiochip_remove_by_type(SUBCLASS);
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("GPIO lines for programs of Xenomai");
