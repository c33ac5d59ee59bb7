/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host with as little memory as the smallest microcontroller. */
#ifndef GAUGE_HARDWARE_H
#define GAUGE_HARDWARE_H

#include "host_hardware.h"

#define MACHINE_K 4
#define MACHINE_BITS 24

#endif
