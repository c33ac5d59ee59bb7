/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of this machine, as its main function and its vector table know them. */
#ifndef GAUGE_PARTS_H
#define GAUGE_PARTS_H

#include <stdint.h>

void clock_begin(void);
void edges_begin(void);
void line_begin(void);

/* Takes parts of the chip out of their reset; the clock that they need must run. */
void chip_begin(uint32_t parts);

/* A PLL gives 12 MHz times `multiplier`, divided by `first` and by `second`. */
void pll_begin(uint32_t pll, uint32_t multiplier, uint32_t first, uint32_t second);

#define FLASH_ID_BYTES 8
void flash_id(uint8_t id[FLASH_ID_BYTES]);

/* Pairs of ticks since power-up, modulo 2^32; wants interrupts off. */
uint32_t clock_pairs(void);

/* Ticks until `tick`, which is less than 2^23 away (67 ms). */
int32_t clock_ahead(uint32_t tick);

void edges_interrupt(void);
void uart_interrupt(void); /* of the line there is: one of these two */
void usb_interrupt(void);

#endif
