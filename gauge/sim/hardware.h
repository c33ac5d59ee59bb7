/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the simulated machine is: the ATmega of ../avr, whose time is counted in cycles. */
#ifndef SIM_HARDWARE_H
#define SIM_HARDWARE_H

#define MACHINE_HZ 16000000
#define CYCLES_PER_US (MACHINE_HZ / 1000000)

#define APART_CYCLES 800   /* two edges of one direction, 10,000 times a second, are never dropped */
#define SERVICE_CYCLES 400 /* two edges of one direction are thus twice as far apart as the interrupt takes */

#endif
