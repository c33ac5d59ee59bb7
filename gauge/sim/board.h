/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated board of the exact simulator: its delays are known to the cycle, and recorded for comparison. */
#ifndef SIM_BOARD_H
#define SIM_BOARD_H

#include <stdint.h>
#include <stdio.h>

#include "machine.h"

#define PENDING 64

struct edge {
	int level;
	struct bench *bench;
	long delay; /* cycles from the stimulus to this answer; -1: not an answer */
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
	int64_t *samples[2];
	size_t count[2];
	char line[256];
	size_t line_length;
	int replied, echo, in_frame;
	FILE *trace, *raw;
};

/* A timer16_output: handles a change of the firmware's output. */
void board_output_changed(void *context, int level, avr_cycle_count_t when);

/* Starts N falling edges, with arguments `PERIOD JITTER LOW N`; -1 if these are invalid. */
int board_square(struct bench *bench, const char *arguments);

void board_stop(struct bench *bench);

/* Prints the board's samples as histograms in the gauge's format, and clears them. */
void board_print_histograms(struct bench *bench, unsigned k);

/* Allocates memory for the samples; -1 if there is none. */
int board_begin(struct bench *bench);

#endif
