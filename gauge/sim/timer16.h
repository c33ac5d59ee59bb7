/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A 16-bit timer of the ATmega family, exact to the cycle, in place of simavr's own.
 *
 * simavr 1.6 toggles the output on every match, drops overflow flags when another flag is cleared,
 * forgets interrupts that were flagged before they were enabled and charges nothing for interrupt
 * entry.  This model knows what the gauge uses: normal mode, undivided clock, output A (set, clear,
 * force), compare B, overflow and input capture.
 *
 * The files of this folder link libsimavr, which is GPL-3.0-or-later, and so are they: test tools
 * of their own, apart from the rest of fastenough (GPL-2.0-or-later).
 */
#ifndef SIM_TIMER16_H
#define SIM_TIMER16_H

#include <sim_avr.h>

/* Data addresses, bits and vectors of the timer and its pins on one microcontroller. */
struct timer16_map {
	const char *mcu;
	char uart;
	uint16_t flags, mask, control_a, control_b, control_c, count, capture, compare_a, compare_b;
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

/* The map of a microcontroller by name, NULL where there is none. */
const struct timer16_map *timer16_map(const char *mcu);

/* Takes the timer of an initialised avr over; `changed` is called at each change of the output pin. */
void timer16_attach(struct timer16 *timer, avr_t *avr, const struct timer16_map *map, timer16_output changed,
		    void *context);

/* The input changes at a cycle that may lie a little in the past (within the present wrap). */
void timer16_input(struct timer16 *timer, int level, avr_cycle_count_t when);

#endif
