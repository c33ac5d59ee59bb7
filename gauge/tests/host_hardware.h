/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The properties common to both sizes of the host: the times of the AVR machines. */
#ifndef GAUGE_HOST_HARDWARE_H
#define GAUGE_HOST_HARDWARE_H

#include "flat_memory.h"

#define MACHINE_NAME "host"
#define MACHINE_TICK_PS 62500
#define MACHINE_CARRIES 8
#define MACHINE_QUEUE 8
#define MACHINE_SHORTEST_PERIOD 400
#define MACHINE_SHORTEST_TIMEOUT 64
#define MACHINE_WAIT_MIN 48
#define MACHINE_WAIT_MAX 113136
#define MACHINE_SELFTEST_WAIT 1600
#define MACHINE_SELFTEST_TIMEOUT 16000

#endif
