/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders to this board: each is checked, recorded, carried out by a program that the board's administrator names, and
 * answered.  The publisher itself has no right to change anything on the board.
 */
#ifndef ORDERS_H
#define ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

#define ORDERS_ANSWER 512

struct orders {
	const struct options *options;
	int64_t minute_ns; /* when the current minute began */
	int in_minute;
};

/* Carries out an order or refuses it, and writes the answer; false where none is sent, since there were too many. */
bool orders_take(struct orders *orders, const char *message, size_t size, char answer[ORDERS_ANSWER]);

#endif
