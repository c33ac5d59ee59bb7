/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words on the pins' socket of the paced gauge: lines of text on a unix stream socket, on which
 * the gauge listens; one board at a time.  Times are CLOCK_MONOTONIC of the one machine both run on.
 *
 * Gauge to board, on each change of its output, and once on connecting:
 *
 *     out LEVEL CYCLE NS      level 0 or 1; the 16 MHz cycle of the change; when this line was sent
 *
 * Board to gauge, on each change of the board's output:
 *
 *     in LEVEL NS             level 0 or 1; when it happened, 0 or left out for "as you read this"
 *
 *     count                   asks for what the simulator has counted: a line `counted NAME=NUMBER ...`
 *
 * A board that sends anything else is disconnected.
 */
#ifndef SIM_PINS_H
#define SIM_PINS_H

#define PINS_LINE 128 /* longer than any line */

#endif
