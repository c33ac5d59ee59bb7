/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the state machines of the PIO run: two samplers of the input, one cycle out of phase, and a sender for the output.
 * One instruction is one cycle.
 *
 * Each has the time in its register X, which it counts down in every second cycle on average: whichever way it goes, it
 * passes as many countdowns as other instructions before it is back, and none of the others can stall.  (A countdown is
 * a jump to the next instruction, so that it does nothing else.)  So X tells the cycle since the start for ever, and a
 * sampler's reading of X is the tick of an edge, exact to two cycles; of both samplers, to one.
 */
#ifndef GAUGE_PROGRAM_H
#define GAUGE_PROGRAM_H

#include <stdint.h>

#define JUMP(to) (0x0000 | (to))
#define COUNT_DOWN_AND_JUMP(to) (0x0040 | (to))
#define JUMP_UNLESS_X_IS_Y(to) (0x00a0 | (to))
#define JUMP_IF_HIGH(to) (0x00c0 | (to))
#define PUSH_X_TAKEN 0x8000 /* dropped when there is no room */
#define PULL_OR_TAKE_X 0x8080
#define MOVE_PULLED_TO_Y 0xa047
#define DO_NOTHING 0xa042
#define TAKE_X 0xa0c1
#define SET_PIN(level) (0xe000 | (level))
#define SET_X_0 0xe020
#define SET_PIN_OUTPUT 0xe081

/* Where programs begin, and the instructions that are changed while they run. */
enum {
	SAMPLE_HIGH = 0,
	SAMPLE_FALL = 5,  /* PUSH_X_TAKEN where falling edges are wanted, else DO_NOTHING */
	SAMPLE_LOW = 6,   /* the target of the wrap */
	SAMPLE_WRAP = 7,
	SAMPLE_RISE = 11, /* the same for rising edges */
	SAMPLE_LATER = 13,
	SEND_IDLE = 14, /* the target of the wrap */
	SEND_WRAP = 19,
	SEND_ARMED = 20,
	SEND_WAIT = 23,
	SEND_COMPARE = 24, /* DO_NOTHING lets a stimulus out at once */
	SEND_CHANGE = 25,  /* SET_PIN() */
};

static const uint16_t PROGRAM[] = {
	/* sampler: until the input falls; a look in every second cycle */
	[SAMPLE_HIGH] = COUNT_DOWN_AND_JUMP(1),
	JUMP_IF_HIGH(SAMPLE_HIGH),
	COUNT_DOWN_AND_JUMP(3),
	TAKE_X,
	COUNT_DOWN_AND_JUMP(5),
	[SAMPLE_FALL] = DO_NOTHING,
	/* until it rises; the wrap takes no cycle */
	[SAMPLE_LOW] = COUNT_DOWN_AND_JUMP(7),
	[SAMPLE_WRAP] = JUMP_IF_HIGH(8),
	COUNT_DOWN_AND_JUMP(9),
	TAKE_X,
	COUNT_DOWN_AND_JUMP(11),
	[SAMPLE_RISE] = DO_NOTHING,
	COUNT_DOWN_AND_JUMP(13),
	[SAMPLE_LATER] = JUMP(SAMPLE_HIGH), /* here the second sampler begins */

	/* sender: with nothing to pull it gets X, which has not changed when it is compared */
	[SEND_IDLE] = PULL_OR_TAKE_X,
	MOVE_PULLED_TO_Y,
	JUMP_UNLESS_X_IS_Y(SEND_ARMED),
	COUNT_DOWN_AND_JUMP(18),
	COUNT_DOWN_AND_JUMP(19),
	[SEND_WRAP] = COUNT_DOWN_AND_JUMP(SEND_IDLE),
	[SEND_ARMED] = COUNT_DOWN_AND_JUMP(21),
	COUNT_DOWN_AND_JUMP(22),
	COUNT_DOWN_AND_JUMP(23),
	[SEND_WAIT] = COUNT_DOWN_AND_JUMP(24),
	[SEND_COMPARE] = JUMP_UNLESS_X_IS_Y(SEND_WAIT),
	[SEND_CHANGE] = SET_PIN(1),
	COUNT_DOWN_AND_JUMP(27),
	COUNT_DOWN_AND_JUMP(28),
	JUMP(SEND_IDLE),
};

#define PROGRAM_LENGTH (sizeof(PROGRAM) / sizeof(PROGRAM[0]))

_Static_assert(PROGRAM_LENGTH <= 32, "the instruction memory has 32 places");

#endif
