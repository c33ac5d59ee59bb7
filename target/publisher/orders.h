/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders to this board: each is verified, recorded, carried out by the program `executor` of the options, and answered.
 *
 * The publisher, which has no right to change anything on the board, and the executor, which has, both do this, each with
 * its own record of the newest order.  The program gets the action, its value, and the signed order on standard input.
 */
#ifndef ORDERS_H
#define ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot_clock.h"
#include "child.h"
#include "options.h"

#define ORDERS_ANSWER 512
#define ORDERS_ATTACHMENT (900 << 10) /* fits into a message of 1 MiB */
#define ORDERS_LIMIT_NS (20 * NS_PER_S) /* of the publisher: shorter than the server's time-out for a silent client */

struct orders {
	const struct options *options;
	int64_t limit_ns;  /* time for the program */
	int64_t minute_ns; /* when the current minute began */
	int in_minute;
	struct child_rest attachment; /* of the newest answer: what its program printed behind the first line; size 0: nothing */
};

/* Carries out or refuses an order and writes the answer; false if the limit of orders per minute leaves it unanswered. */
bool orders_handle(struct orders *orders, const char *message, size_t size, char answer[ORDERS_ANSWER]);

#endif
