/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of the paced gauge: its pins on a socket, its serial line on a pseudo-terminal, and the clock for both. */
#ifndef SIM_PACED_H
#define SIM_PACED_H

#include <stddef.h>
#include <stdint.h>

#include "edges.h"
#include "machine.h"
#include "pins.h"

#define UNSENT 65536
#define WORDS 4096 /* read at once */
#define COUNTED (2 * PINS_LINE)

struct bench {
	struct machine machine;
	int listener, client, terminal, terminal_end;
	const char *socket_path, *link_path;
	int64_t start_ns;
	int awaiting; /* the output has changed, the input has not yet followed */
	int broken;   /* it has been said why */
	avr_cycle_count_t out_cycle;
	int64_t out_ns;
	struct edges edges;
	char words[WORDS];
	size_t words_length;
	uint8_t unsent[UNSENT];
	size_t unsent_length;
	unsigned long out_edges, bytes_dropped;
	int64_t most_behind_ns;
};

int64_t now_ns(void);
avr_cycle_count_t cycles_in(int64_t ns);

/* Says on standard error why the simulation cannot go on rightly, and ends it. */
void fail(struct bench *bench, const char *why);

/* The pins: listens on the socket, accepts a board, reads what it says; -1 with errno when there is no socket. */
int open_pins(struct bench *bench);
void welcome_board(struct bench *bench);
void hear_pins(struct bench *bench);

/* The firmware has changed its output; a timer16_output. */
void on_output(void *context, int level, avr_cycle_count_t when);

/* Writes what has been counted as words `NAME=NUMBER`, one line of at most COUNTED bytes; returns its length. */
size_t counters(const struct bench *bench, char *line, size_t size);

/* The serial line; -1 with errno when there is no terminal. */
int open_terminal(struct bench *bench);
void hear_terminal(struct bench *bench);
void tell_terminal(struct bench *bench);

/* The firmware has sent a byte; a machine_byte. */
void on_byte(void *context, uint8_t byte);

#endif
