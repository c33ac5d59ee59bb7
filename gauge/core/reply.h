/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies: lines of `key=value`, with a CRC each if the command had one, and a last line with the number of lines. */
#ifndef GAUGE_REPLY_H
#define GAUGE_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"

struct reply {
	bool checked;
	uint8_t column; /* 0 at the start of a line */
	uint16_t lines;
	uint16_t crc;
};

void reply_begin(struct reply *reply, bool checked);
void reply_text(struct reply *reply, text_t text);
void reply_string(struct reply *reply, const char *text);
void reply_unsigned(struct reply *reply, uint64_t value);
void reply_key(struct reply *reply, text_t key, uint64_t value);
void reply_signed_key(struct reply *reply, text_t key, int64_t value);
void reply_line_end(struct reply *reply);

/* The last line of a successful reply: `ok lines=N`. */
void reply_ok(struct reply *reply);

/* The only line of the reply to a refused command: `error REASON`. */
void reply_error(struct reply *reply, text_t reason);

#endif
