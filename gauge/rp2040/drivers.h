/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The drivers of this machine, for its main function and its vector table. */
#ifndef GAUGE_DRIVERS_H
#define GAUGE_DRIVERS_H

#include <stdint.h>

void clock_begin(void);
void edges_begin(void);
void line_begin(void);

/* Releases blocks of the chip (RESETS_RESET_..._BITS) from reset; their clocks must run. */
void unreset_blocks(uint32_t blocks);

/* Starts a PLL: 12 MHz times `fbdiv`, divided by `postdiv1` and by `postdiv2`. */
void pll_begin(uint32_t pll, uint32_t fbdiv, uint32_t postdiv1, uint32_t postdiv2);

#define FLASH_ID_BYTES 8
void flash_id(uint8_t id[FLASH_ID_BYTES]);

/* Pairs of ticks since power-up, modulo 2^32; requires interrupts off. */
uint32_t clock_pairs(void);

/* Ticks from now until `tick`, which must be less than 2^23 ticks (67 ms) away. */
int32_t clock_ahead(uint32_t tick);

void edges_interrupt(void);
void uart_interrupt(void); /* an image has one serial line, so one of these two */
void usb_interrupt(void);

#endif
