/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of this machine, as its main function and its vector table know them. */
#ifndef GAUGE_PARTS_H
#define GAUGE_PARTS_H

#include <stdint.h>

void clock_begin(void);
void edges_begin(void);
void uart_begin(void);

/* Pairs of ticks since power-up, modulo 2^32; wants interrupts off. */
uint32_t clock_pairs(void);

void edges_interrupt(void);
void uart_interrupt(void);

#endif
