/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of the commands: a command is a function of its line; the table of them is in commands.c. */
#ifndef GAUGE_COMMANDS_H
#define GAUGE_COMMANDS_H

#include "protocol.h"
#include "reply.h"

/* The last line of a command that is not carried out. */
void command_fail(struct reply *reply, text_t why);

/* The parameters of a command; false when they are wrong, which has been said then. */
bool command_parameters(struct reply *reply, const char *text, const struct parameter *table, uint8_t count,
			uint8_t required, uint32_t *values);

/* Exact statistics of one series. */
void show_series(struct reply *reply, uint8_t series);

void show_counters(struct reply *reply, const char *text);
void show_histogram(struct reply *reply, const char *text);
void take_histogram(struct reply *reply, const char *text);

#endif
