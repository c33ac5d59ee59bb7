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
	bool complete; /* nothing may be added until line_clear() */
	char text[LINE_SIZE];
};

enum line_check { LINE_PLAIN, LINE_CHECKED, LINE_DAMAGED };

void line_clear(struct line *line);

/* Adds a byte; the line is complete at a line end, which is not kept.  Empty lines are passed over. */
void line_add(struct line *line, uint8_t byte);

/* Cuts the CRC off and says whether it is right. */
enum line_check line_check(struct line *line);

/* What a parameter of a command may be; tables of these lie in program memory. */
struct parameter {
	char key[8];
	uint32_t min, max;
};

/* The words of a line: the first one is the command. */
bool line_is(const char *text, text_t command);

enum parse_error { PARSE_OK, PARSE_UNKNOWN_KEY, PARSE_BAD_NUMBER, PARSE_OUT_OF_RANGE, PARSE_TWICE, PARSE_MISSING };

/* Reads the `key=value` words behind the command into values[], in the order of the table; what is not
 * named keeps its value.  `required` has a bit for each that must be named.  `at` becomes the index of
 * the offending one (not with PARSE_UNKNOWN_KEY); values are of no use then. */
enum parse_error line_parameters(const char *text, const struct parameter *table, uint8_t count, uint8_t required,
				 uint32_t *values, uint8_t *at);

#endif
