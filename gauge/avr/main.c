/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <avr/interrupt.h>
#include <avr/sleep.h>

#include "capture.h"
#include "commands.h"
#include "drivers.h"
#include "gauge.h"
#include "machine.h"

#define STACK_PAINT 0xC5

extern uint8_t _end; /* of the linker: the end of the last variable */

/* Runs before main(), on an empty stack.  Bytes that keep this pattern were never used. */
static void __attribute__((naked, used, section(".init3"))) paint_stack(void)
{
	for (uint8_t *byte = &_end; byte <= (uint8_t *)RAMEND; byte++)
		*byte = STACK_PAINT;
}

uint16_t machine_stack_free(void)
{
	const uint8_t *byte = &_end;

	while (*byte == STACK_PAINT)
		byte++;
	return (uint16_t)(byte - &_end);
}

/* A reset of the chip clears these registers; only the simulator sets them.  The program uses them after this call. */
static void detect_simulator(void)
{
	if (GPIOR1 == 'S' && GPIOR2 == 'I')
		GPIOR0 |= 1 << SIMULATED;
}

bool machine_is_simulated(void)
{
	return GPIOR0 & 1 << SIMULATED;
}

/* Wakes at each received byte and at each timer wrap. */
static void sleep_until_interrupt(void)
{
	sleep_enable();
	sleep_cpu();
	sleep_disable();
}

int main(void)
{
	detect_simulator();
	gauge_begin();
	timer_begin();
	uart_begin();
	set_sleep_mode(SLEEP_MODE_IDLE);
	sei();
	for (;;) {
		gauge_serve();
		commands_serve();
		if (gauge_is_idle() && machine_send_done() && !gauge.line.length)
			sleep_until_interrupt();
	}
}
