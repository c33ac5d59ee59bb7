/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A 16-bit timer of the ATmega family, exact to the cycle, in place of simavr's own.
 *
 * simavr 1.6 toggles the output on every match, drops overflow flags when another flag is cleared, loses interrupts that
 * were flagged before they were enabled, and adds no cycles for interrupt entry.  This model supports what the gauge uses:
 * normal mode, undivided clock, output A (set, clear, force), compare B, overflow and input capture.
 *
 * The programs of this folder link libsimavr (GPL-3.0-or-later), so their sources have the same licence, unlike the rest of
 * fastenough (GPL-2.0-or-later).  They are test tools.
 */
#ifndef SIM_TIMER16_H
#define SIM_TIMER16_H

#include <sim_avr.h>

/* Data addresses, vectors and pin bits of the timer on one microcontroller. */
struct timer16_map {
	const char *mcu;
	char uart;
	uint16_t tifr, timsk, tccra, tccrb, tccrc, tcnt, icr, ocra, ocrb;
	uint8_t vector_capture, vector_b, vector_overflow;
	uint16_t out_pins, in_pins; /* the PINx registers */
	uint8_t out_bit, in_bit;
	uint8_t entry_cycles; /* cost of entering an interrupt */
};

typedef void (*timer16_output)(void *context, int level, avr_cycle_count_t when);

struct timer16 {
	avr_t *avr;
	const struct timer16_map *map;
	avr_cycle_count_t zero; /* cycle at which the counter was 0 */
	int running;
	int output, input;
	uint16_t captured;
	avr_int_vector_t *on_capture, *on_b, *on_overflow;
	timer16_output changed;
	void *context;
};

/* The map of a microcontroller by name; NULL if it is unknown. */
const struct timer16_map *timer16_map(const char *mcu);

/* Replaces the timer of an initialised avr; calls `changed` at each change of the output pin. */
void timer16_attach(struct timer16 *timer, avr_t *avr, const struct timer16_map *map, timer16_output changed,
		    void *context);

/* Changes the input at a cycle that may be slightly in the past (within the current wrap). */
void timer16_input(struct timer16 *timer, int level, avr_cycle_count_t when);

#endif
