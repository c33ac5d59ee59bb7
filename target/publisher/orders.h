/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders to this board: each is verified, recorded, carried out by a program of the board's administrator, and answered.
 * The publisher itself has no right to change anything on the board.
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

/* Carries out or refuses an order and writes the answer; false if the limit of orders per minute leaves it unanswered. */
bool orders_handle(struct orders *orders, const char *message, size_t size, char answer[ORDERS_ANSWER]);

#endif
