/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The properties of this machine, as core/machine.h requires: an RP2040 at 125 MHz, whose ticks are undivided cycles. */
#ifndef GAUGE_HARDWARE_H
#define GAUGE_HARDWARE_H

#include "flat_memory.h"

#define CLOCK_HZ 125000000u
#define SERIAL_BAUD 500000u
#define MACHINE_NAME "rp2040"
#define MACHINE_TICK_PS 8000
#define MACHINE_K 7
#define MACHINE_BITS 30
#define MACHINE_CARRIES 64
#define MACHINE_QUEUE 64

#define MACHINE_SHORTEST_PERIOD 125 /* 1 us */
#define MACHINE_SHORTEST_TIMEOUT 64
#define MACHINE_WAIT_MIN 375 /* 3 us to 7.071 ms */
#define MACHINE_WAIT_MAX 883875
#define MACHINE_SELFTEST_WAIT 12500 /* 100 us, and 1 ms */
#define MACHINE_SELFTEST_TIMEOUT 125000

#endif
