/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated board of the exact gauge: its delays are known to the cycle, and kept to compare. */
#ifndef SIM_BOARD_H
#define SIM_BOARD_H

#include <stdint.h>
#include <stdio.h>

#include "machine.h"

#define PENDING 64

struct edge {
	int level;
	struct bench *bench;
	long delay; /* what the board took for it; -1: not an answer */
	int used;
};

struct bench {
	struct machine machine;
	uint32_t random;
	unsigned long delay_min, delay_max, deaf;
	int follows;
	avr_cycle_count_t last_in;
	struct edge pending[PENDING];
	unsigned long period, jitter, low, falls;
	avr_cycle_count_t last_fall;
	int have_fall;
	unsigned long expected;
	int64_t *kept[2];
	size_t count[2];
	char line[256];
	size_t line_length;
	int replied, echo, in_frame;
	FILE *trace, *raw;
};

/* The firmware has changed its output; a timer16_output. */
void board_sees(void *context, int level, avr_cycle_count_t when);

/* Falls so many times of its own accord: `PERIOD JITTER LOW N`; -1 when the arguments are not that. */
int board_square(struct bench *bench, const char *arguments);

void board_stand_still(struct bench *bench);

/* Prints what the board has done as histograms in the gauge's words, and forgets it. */
void board_tell_truth(struct bench *bench, unsigned k);

/* Room for what the board does; -1 when there is none. */
int board_begin(struct bench *bench);

#endif
