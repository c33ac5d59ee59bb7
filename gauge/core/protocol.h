/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines of the text protocol: `command key=value ... *CRC`, the CRC optional.
 * A command that carries one gets replies that carry one.
 */
#ifndef GAUGE_PROTOCOL_H
#define GAUGE_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"

#define LINE_SIZE 96

struct line {
	uint8_t length;
	bool overlong;
	bool complete; /* call line_clear() before the next line_add() */
	char text[LINE_SIZE];
};

enum line_check { LINE_PLAIN, LINE_CHECKED, LINE_DAMAGED };

void line_clear(struct line *line);

/* Adds a byte.  A line end, which is not stored, completes the line.  Empty lines are ignored. */
void line_add(struct line *line, uint8_t byte);

/* Checks the CRC and removes it from the line. */
enum line_check line_check(struct line *line);

/* Key and limits of a parameter of a command; tables of these are in program memory. */
struct parameter {
	char key[8];
	uint32_t min, max;
};

/* True if the line begins with the words of this command. */
bool line_is(const char *text, text_t command);

enum parse_error { PARSE_OK, PARSE_UNKNOWN_KEY, PARSE_BAD_NUMBER, PARSE_OUT_OF_RANGE, PARSE_TWICE, PARSE_MISSING };

/* Reads the `key=value` words of a command into values[], in the order of the table; parameters that are absent keep their
 * values.  `required` has one bit per mandatory parameter.  On an error `at` becomes the index of the parameter (except
 * for PARSE_UNKNOWN_KEY), and values[] are invalid. */
enum parse_error line_parameters(const char *text, const struct parameter *table, uint8_t count, uint8_t required,
				 uint32_t *values, uint8_t *at);

#endif
