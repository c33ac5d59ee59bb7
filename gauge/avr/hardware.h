/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The properties of this machine, as core/machine.h requires: an ATmega at 16 MHz, which counts undivided cycles. */
#ifndef GAUGE_HARDWARE_H
#define GAUGE_HARDWARE_H

#include <avr/pgmspace.h>

#define CLOCK_HZ 16000000UL
#define SERIAL_BAUD 500000UL
#define MACHINE_TICK_PS 62500

/* A microcontroller with more memory gets finer buckets and a longer range. */
#if defined(__AVR_ATmega328P__)
#define MACHINE_NAME "atmega328p"
#define MACHINE_K 4
#define MACHINE_BITS 24
#elif defined(__AVR_ATmega2560__)
#define MACHINE_NAME "atmega2560"
#define MACHINE_K 6
#define MACHINE_BITS 26
#elif defined(__AVR_ATmega32U4__)
#define MACHINE_NAME "atmega32u4"
#define MACHINE_K 4
#define MACHINE_BITS 26
#else
#error "unknown microcontroller: add its memory here, and its timer, pins and serial port in port.h"
#endif
#define MACHINE_CARRIES 8
#define MACHINE_QUEUE 8

#define MACHINE_SHORTEST_PERIOD 400 /* 25 us: the capture interrupt handles such edges one by one */
#define MACHINE_SHORTEST_TIMEOUT 64
#define MACHINE_WAIT_MIN 48 /* 3 us to 7.071 ms */
#define MACHINE_WAIT_MAX 113136
#define MACHINE_SELFTEST_WAIT 1600 /* 100 us, and 1 ms */
#define MACHINE_SELFTEST_TIMEOUT 16000

/* Constant text is in program memory. */
#define TEXT(string) PSTR(string)
#define TEXT_CONST PROGMEM
#define text_byte(address) ((char)pgm_read_byte(address))
#define text_copy(to, from, size) memcpy_P(to, from, size)

#endif
