/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The properties of the simulated machine, an ATmega (../avr).  Times are in cycles. */
#ifndef SIM_HARDWARE_H
#define SIM_HARDWARE_H

#define MACHINE_HZ 16000000
#define CYCLES_PER_US (MACHINE_HZ / 1000000)

#define APART_CYCLES 800   /* spacing of edges: the firmware never drops edges of one direction at 10,000 a second */
#define SERVICE_CYCLES 400 /* spacing of late edges: those of one direction are twice the time of the interrupt apart */

#endif
