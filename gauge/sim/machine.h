/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The firmware image in a simulated microcontroller: pins and serial line, nothing paced. */
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
	machine_byte said;
	void *context;
};

/* Loads an ELF image; returns 0, or -1 with the reason on standard error. */
int machine_load(struct machine *machine, const char *mcu, const char *image, timer16_output output,
		 machine_byte said, void *context);

/* Runs one step (up to the next event); -1 when the program has crashed. */
int machine_step(struct machine *machine);

/* Gives a byte to the serial line; 0 when it is busy and the byte must be given later. */
int machine_give(struct machine *machine, uint8_t byte);

/* As the reset button does: the program begins anew, and its clock with it. */
void machine_reset(struct machine *machine);

#endif
