/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds members of a JSON object without building a tree: for lines of a recording, answers of takers, and orders. */
#ifndef JSON_SCAN_H
#define JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the scanned text: a string with its quotes, a number, a word, or a whole object or array. */
struct json_value {
	const char *text;
	size_t size;
};

/* The first member with this key of the object at the beginning of the text; false if there is none. */
bool json_member(const char *text, size_t size, const char *key, struct json_value *value);
/* An integer from 0 to `max`; false for anything else. */
bool json_count(const struct json_value *value, int64_t max, int64_t *number);
/* A string without escapes that fits into `room` bytes, including its NUL; false for anything else. */
bool json_plain(const struct json_value *value, char *out, size_t room);
/* Whether it is a string with exactly this content, which needs no escapes. */
bool json_is(const struct json_value *value, const char *content);

#endif
