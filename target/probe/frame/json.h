/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes JSON into a growing buffer and inserts the commas. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *text;
	size_t used, room;
};

void json_free(struct json *json);
void json_clear(struct json *json);
void json_open(struct json *json, char bracket);  /* '{' or '[' */
void json_close(struct json *json, char bracket); /* '}' or ']' */
void json_key(struct json *json, const char *name);
void json_int(struct json *json, int64_t value);
/* "[first,second]", written at once: histograms are thousands of them. */
void json_pair(struct json *json, int64_t first, int64_t second);
void json_uint(struct json *json, uint64_t value);
void json_decimal(struct json *json, uint64_t low, uint64_t high); /* 128 bits, as a string */
void json_text(struct json *json, const char *value);              /* NULL becomes null */
void json_bool(struct json *json, bool value);
void json_null(struct json *json);
void json_fixed(struct json *json, int64_t thousandths); /* a number with three decimals */
void json_mean(struct json *json, int64_t sum, uint64_t count); /* the same; without decimals beyond 100 days in ns */
void json_raw(struct json *json, const char *value, size_t length); /* is JSON already */
void json_repeat(struct json *json, size_t begin, size_t end);      /* the text between these offsets */
void json_newline(struct json *json);

/* A key and its value at once. */
void json_member_int(struct json *json, const char *name, int64_t value);
void json_member_uint(struct json *json, const char *name, uint64_t value);
void json_member_text(struct json *json, const char *name, const char *value);

#endif
