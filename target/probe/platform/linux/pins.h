/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways to GPIO lines, by a word that is part of their functions' names; the first that is present is taken.
 * What each implements is in gpio.h. */
#ifndef PINS_H
#define PINS_H

#define PINS_WAYS(X)                                                                                               \
	X(cdev)                                                                                                    \
	X(sysfs)

/* What a machine without them has not, by the number of the way asked for; 0: any. */
#define PINS_LOOKED_FOR(way) \
	((way) == 1 ? "/dev/gpiochip* of version 2" : "/dev/gpiochip* and no /sys/class/gpio/gpiochip*")

#endif
