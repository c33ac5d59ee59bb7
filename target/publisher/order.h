/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An order to a board: one line of JSON, then the SSH signature of that line.
 *
 * The signed line has all limits of an order: the machine, the time of issue, which is also its sequence number, and the
 * time of expiry.  Only the exact text that `fastenough farm order` writes is accepted, so that a line has one meaning.
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDER_MAX (64 << 10) /* bytes of a message */
#define ORDER_ID 33
#define ORDER_WORD 65

struct order {
	char id[ORDER_ID];
	char machine[ORDER_ID];
	int64_t issued_us, expires_s; /* since 1970 */
	char by[ORDER_WORD];          /* the signer, as in the file of allowed signers */
	char action[ORDER_WORD];
	char value[ORDER_MAX];
	const char *line, *signature; /* in the message */
	size_t line_size, signature_size;
};

/* False if the message does not begin with the line of an order. */
bool order_parse(struct order *order, const char *message, size_t size);
/* Reason to refuse it on this machine now, after an order issued at `last_us`; NULL: none. */
const char *order_fault(const struct order *order, const char *machine, int64_t last_us, int64_t now_s);
/* Whether the action is known and its value valid. */
bool order_is_known(const struct order *order);

#endif
