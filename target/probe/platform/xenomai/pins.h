/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways to GPIO lines; what each implements is in gpio.h. */
#ifndef PINS_H
#define PINS_H

#define PINS_WAYS(X) X(rtdm)

#endif
