/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host with as much memory as the largest microcontroller. */
#ifndef GAUGE_HARDWARE_H
#define GAUGE_HARDWARE_H

#include "host_hardware.h"

#define MACHINE_K 6
#define MACHINE_BITS 26

#endif
