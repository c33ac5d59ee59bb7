/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The firmware in a simulated microcontroller, with pins and serial line, in simulated time. */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include <stddef.h>

#include "hardware.h"
#include "timer16.h"

typedef void (*machine_byte)(void *context, uint8_t byte);

struct machine {
	avr_t *avr;
	struct timer16 timer;
	avr_irq_t *uart_input;
	int uart_ready;
	machine_byte on_byte;
	void *context;
};

/* Loads an ELF image; `on_byte` gets each byte that the firmware sends.  Returns 0, or -1 with a message on stderr. */
int machine_load(struct machine *machine, const char *mcu, const char *image, timer16_output output,
		 machine_byte on_byte, void *context);

/* Runs one step, up to the next event; -1 if the program has crashed. */
int machine_step(struct machine *machine);

/* Passes a byte to the serial line; 0 if the line is busy, so try again later. */
int machine_receive(struct machine *machine, uint8_t byte);

/* The reset button: restarts the program and its clock. */
void machine_reset(struct machine *machine);

#endif
