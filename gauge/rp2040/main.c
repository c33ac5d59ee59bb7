/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chip.h"
#include "commands.h"
#include "gauge.h"
#include "machine.h"
#include "parts.h"

#define STACK_PAINT 0xC5
#define MARK_OF_SIMULATION 0x53494D55u

extern uint8_t stack_bottom; /* what is never overwritten from here on was never used */

uint16_t machine_stack_free(void)
{
	const uint8_t *byte = &stack_bottom;

	while (*byte == STACK_PAINT)
		byte++;
	return (uint16_t)(byte - &stack_bottom);
}

/* No program here writes this register, and a chip's reset clears it: only the simulator sets it. */
bool machine_is_simulated(void)
{
	return WATCHDOG_SCRATCH0 == MARK_OF_SIMULATION;
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
