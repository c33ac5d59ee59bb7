/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MOST 20 /* characters of 64 bits, with a sign */

static void json_grow(struct json *json, size_t more)
{
	json->room = (json->used + more) * 2;
	json->text = realloc(json->text, json->room);
	if (!json->text)
		abort();
}

static char *json_reserve(struct json *json, size_t more)
{
	if (__builtin_expect(json->used + more > json->room, 0))
		json_grow(json, more);
	return json->text + json->used;
}

void json_raw(struct json *json, const char *value, size_t length)
{
	memcpy(json_reserve(json, length), value, length);
	json->used += length;
}

void json_repeat(struct json *json, size_t begin, size_t end)
{
	char *copy = json_reserve(json, end - begin);

	memcpy(copy, json->text + begin, end - begin);
	json->used += end - begin;
}

static void json_char(struct json *json, char character)
{
	*json_reserve(json, 1) = character;
	json->used++;
}

/* A comma unless this is the first of its kind. */
static void json_separate(struct json *json)
{
	if (json->used == 0)
		return;
	switch (json->text[json->used - 1]) {
	case '[':
	case '{':
	case ':':
	case '\n':
		return;
	default:
		json_char(json, ',');
	}
}

void json_free(struct json *json)
{
	free(json->text);
	*json = (struct json){0};
}

void json_clear(struct json *json)
{
	json->used = 0;
}

void json_open(struct json *json, char bracket)
{
	json_separate(json);
	json_char(json, bracket);
}

void json_close(struct json *json, char bracket)
{
	json_char(json, bracket);
}

static size_t length_of(uint64_t value)
{
	size_t length = 1;

	for (uint64_t power = 10; length < NUMBER_MOST && value >= power; power *= 10)
		length++;
	return length;
}

/* Each returns the end of the written digits, at most NUMBER_MOST behind the text. */
static char *put_uint(char *text, uint64_t value)
{
	char *end = text + length_of(value);

	for (char *digit = end; digit > text; value /= 10)
		*--digit = (char)('0' + value % 10);
	return end;
}

static char *put_int(char *text, int64_t value)
{
	if (value < 0)
		*text++ = '-';
	return put_uint(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_uint(struct json *json, uint64_t value)
{
	char *end;

	json_separate(json);
	end = put_uint(json_reserve(json, NUMBER_MOST), value);
	json->used = (size_t)(end - json->text);
}

void json_int(struct json *json, int64_t value)
{
	char *end;

	json_separate(json);
	end = put_int(json_reserve(json, NUMBER_MOST), value);
	json->used = (size_t)(end - json->text);
}

void json_pair(struct json *json, int64_t first, int64_t second)
{
	char *end;

	json_separate(json);
	end = json_reserve(json, 2 * NUMBER_MOST + 3);
	*end++ = '[';
	end = put_int(end, first);
	*end++ = ',';
	end = put_int(end, second);
	*end++ = ']';
	json->used = (size_t)(end - json->text);
}

void json_fixed(struct json *json, int64_t thousandths)
{
	char text[32];
	uint64_t magnitude = thousandths < 0 ? 0 - (uint64_t)thousandths : (uint64_t)thousandths;
	int length = snprintf(text, sizeof(text), "%s%llu.%03u", thousandths < 0 ? "-" : "",
			      (unsigned long long)(magnitude / 1000), (unsigned)(magnitude % 1000));

	json_separate(json);
	json_raw(json, text, (size_t)length);
}

void json_mean(struct json *json, int64_t sum, uint64_t count)
{
	int64_t whole = sum / (int64_t)count, rest = sum % (int64_t)count;

	if (whole > INT64_MAX / 1001 || whole < -INT64_MAX / 1001)
		json_int(json, whole);
	else
		json_fixed(json, whole * 1000 + (int64_t)((double)rest / (double)count * 1000));
}

void json_decimal(struct json *json, uint64_t low, uint64_t high)
{
	uint32_t limbs[4] = {(uint32_t)(high >> 32), (uint32_t)high, (uint32_t)(low >> 32), (uint32_t)low};
	char digits[41];
	size_t length = 0;

	do { /* long division by ten, most significant limb first */
		uint64_t rest = 0;

		for (int i = 0; i < 4; i++) {
			rest = rest << 32 | limbs[i];
			limbs[i] = (uint32_t)(rest / 10);
			rest %= 10;
		}
		digits[sizeof(digits) - ++length] = (char)('0' + rest);
	} while (limbs[0] | limbs[1] | limbs[2] | limbs[3]);
	json_separate(json);
	json_char(json, '"');
	json_raw(json, digits + sizeof(digits) - length, length);
	json_char(json, '"');
}

/* How many of the characters from here on are ASCII that needs no escape. */
static size_t plain_length(const unsigned char *text)
{
	size_t length = 0;

	while (text[length] >= 0x20 && text[length] < 0x80 && text[length] != '"' && text[length] != '\\')
		length++;
	return length;
}

/* Length of the well-formed UTF-8 sequence that begins here, 0 if there is none. */
static size_t utf8_length(const unsigned char *text)
{
	size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90) ||
	    (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0; /* overlong, surrogate, beyond Unicode */
	return length;
}

/* As many of them as are written at once, which are most. */
static size_t json_characters(struct json *json, const unsigned char *text)
{
	size_t plain = plain_length(text), length = plain ? plain : utf8_length(text);
	char escape[8];

	if (length == 0) {
		json_raw(json, "\\ufffd", 6);
		return 1;
	}
	if (text[0] == '"' || text[0] == '\\') {
		json_char(json, '\\');
		json_char(json, (char)text[0]);
	} else if (text[0] < 0x20) {
		snprintf(escape, sizeof(escape), "\\u%04x", text[0]);
		json_raw(json, escape, 6);
	} else {
		json_raw(json, (const char *)text, length);
	}
	return length;
}

void json_text(struct json *json, const char *value)
{
	const unsigned char *text = (const unsigned char *)value;

	if (!text) {
		json_null(json);
		return;
	}
	json_separate(json);
	json_char(json, '"');
	while (*text)
		text += json_characters(json, text);
	json_char(json, '"');
}

void json_bool(struct json *json, bool value)
{
	json_separate(json);
	json_raw(json, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *json)
{
	json_separate(json);
	json_raw(json, "null", 4);
}

void json_key(struct json *json, const char *name)
{
	json_text(json, name);
	json_char(json, ':');
}

void json_newline(struct json *json)
{
	json_char(json, '\n');
}

void json_member_int(struct json *json, const char *name, int64_t value)
{
	json_key(json, name);
	json_int(json, value);
}

void json_member_uint(struct json *json, const char *name, uint64_t value)
{
	json_key(json, name);
	json_uint(json, value);
}

void json_member_text(struct json *json, const char *name, const char *value)
{
	json_key(json, name);
	json_text(json, value);
}
