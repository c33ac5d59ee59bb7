/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways to GPIO lines; what each implements is in gpio.h. */
#ifndef PINS_H
#define PINS_H

#define PINS_WAYS(X) X(oob)

/* What a machine without them has not. */
#define PINS_LOOKED_FOR(way) "/dev/fastenough-oob/*; fastenough_oob_gpio.ko makes a chip known to the core"

#endif
