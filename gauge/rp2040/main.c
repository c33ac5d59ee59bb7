/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "commands.h"
#include "drivers.h"
#include "gauge.h"
#include "machine.h"
#include "registers.h"

#define STACK_PAINT 0xC5
#define SIMULATION_MARK 0x53494D55u

extern uint8_t stack_bottom; /* of the linker; bytes from here that keep the pattern were never used */

uint16_t machine_stack_free(void)
{
	const uint8_t *byte = &stack_bottom;

	while (*byte == STACK_PAINT)
		byte++;
	return (uint16_t)(byte - &stack_bottom);
}

/* No program writes this register, and a reset of the chip clears it; only the simulator sets it. */
bool machine_is_simulated(void)
{
	return WATCHDOG_SCRATCH0 == SIMULATION_MARK;
}

int main(void)
{
	machine_lock();
	clock_begin();
	gauge_begin();
	edges_begin();
	line_begin();
	machine_unlock();
	for (;;) {
		gauge_serve();
		commands_serve();
	}
}
