/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program of the PIO's state machines: two samplers of the input, one cycle out of phase, and a sender for the output.
 * One instruction takes one cycle.
 *
 * Register X of each state machine is its clock.  It decreases every second cycle: every path through the program contains
 * as many "jmp x--" as other instructions, and no instruction can stall.  (Each "jmp x--" jumps to the next instruction, so
 * it only decrements.)  A sampler's reading of X gives the tick of an edge exact to two cycles, both samplers together exact
 * to one.
 */
#ifndef GAUGE_PIO_PROGRAM_H
#define GAUGE_PIO_PROGRAM_H

#include <stdint.h>

/* Instructions, with the assembler's text. */
#define PIO_JMP(to) (0x0000 | (to))        /* jmp to */
#define PIO_JMP_X_DEC(to) (0x0040 | (to))  /* jmp x-- to */
#define PIO_JMP_X_NE_Y(to) (0x00a0 | (to)) /* jmp x!=y to */
#define PIO_JMP_PIN(to) (0x00c0 | (to))    /* jmp pin to */
#define PIO_PUSH_NOBLOCK 0x8000            /* push noblock: drops the value if the FIFO is full */
#define PIO_PULL_NOBLOCK 0x8080            /* pull noblock: gives X if the FIFO is empty */
#define PIO_MOV_Y_OSR 0xa047               /* mov y, osr */
#define PIO_NOP 0xa042                     /* nop (mov y, y) */
#define PIO_MOV_ISR_X 0xa0c1               /* mov isr, x */
#define PIO_SET_PINS(level) (0xe000 | (level)) /* set pins, level */
#define PIO_SET_X_0 0xe020                 /* set x, 0 */
#define PIO_SET_PINDIRS_1 0xe081           /* set pindirs, 1 */

/* Entry points, and the instructions that are changed while the program runs. */
enum {
	SAMPLE_HIGH = 0,
	SAMPLE_FALL = 5,  /* PIO_PUSH_NOBLOCK to capture falling edges, else PIO_NOP */
	SAMPLE_LOW = 6,   /* the target of the wrap */
	SAMPLE_WRAP = 7,
	SAMPLE_RISE = 11, /* the same for rising edges */
	SAMPLE_LATER = 13,
	SEND_IDLE = 14, /* the target of the wrap */
	SEND_WRAP = 19,
	SEND_ARMED = 20,
	SEND_WAIT = 23,
	SEND_COMPARE = 24, /* PIO_NOP to send a stimulus at once */
	SEND_CHANGE = 25,  /* PIO_SET_PINS() */
};

static const uint16_t PROGRAM[] = {
	/* sampler: waits until the input falls, and tests it every second cycle */
	[SAMPLE_HIGH] = PIO_JMP_X_DEC(1),
	PIO_JMP_PIN(SAMPLE_HIGH),
	PIO_JMP_X_DEC(3),
	PIO_MOV_ISR_X,
	PIO_JMP_X_DEC(5),
	[SAMPLE_FALL] = PIO_NOP,
	/* waits until the input rises; the wrap takes no cycle */
	[SAMPLE_LOW] = PIO_JMP_X_DEC(7),
	[SAMPLE_WRAP] = PIO_JMP_PIN(8),
	PIO_JMP_X_DEC(9),
	PIO_MOV_ISR_X,
	PIO_JMP_X_DEC(11),
	[SAMPLE_RISE] = PIO_NOP,
	PIO_JMP_X_DEC(13),
	[SAMPLE_LATER] = PIO_JMP(SAMPLE_HIGH), /* the second sampler starts here */

	/* sender: from an empty FIFO it pulls X, which is unchanged at the comparison */
	[SEND_IDLE] = PIO_PULL_NOBLOCK,
	PIO_MOV_Y_OSR,
	PIO_JMP_X_NE_Y(SEND_ARMED),
	PIO_JMP_X_DEC(18),
	PIO_JMP_X_DEC(19),
	[SEND_WRAP] = PIO_JMP_X_DEC(SEND_IDLE),
	[SEND_ARMED] = PIO_JMP_X_DEC(21),
	PIO_JMP_X_DEC(22),
	PIO_JMP_X_DEC(23),
	[SEND_WAIT] = PIO_JMP_X_DEC(24),
	[SEND_COMPARE] = PIO_JMP_X_NE_Y(SEND_WAIT),
	[SEND_CHANGE] = PIO_SET_PINS(1),
	PIO_JMP_X_DEC(27),
	PIO_JMP_X_DEC(28),
	PIO_JMP(SEND_IDLE),
};

#define PROGRAM_LENGTH (sizeof(PROGRAM) / sizeof(PROGRAM[0]))

_Static_assert(PROGRAM_LENGTH <= 32, "the instruction memory holds 32 instructions");

#endif
