/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "protocol.h"

#include "crc16.h"

void line_clear(struct line *line)
{
	line->length = 0;
	line->overlong = false;
	line->complete = false;
}

void line_add(struct line *line, uint8_t byte)
{
	if (byte == '\r' || byte == '\n') {
		line->complete = line->length > 0 || line->overlong;
		line->text[line->length] = 0;
	} else if (byte == '\b' || byte == 0x7f) {
		if (line->length)
			line->length--;
	} else if (line->length < LINE_SIZE - 1) {
		line->text[line->length++] = (char)byte;
	} else {
		line->overlong = true;
	}
}

static int8_t hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (int8_t)(c - '0');
	if (c >= 'A' && c <= 'F')
		return (int8_t)(c - 'A' + 10);
	return -1;
}

enum line_check line_check(struct line *line)
{
	uint8_t body = line->length < 6 ? 0 : line->length - 6;
	uint16_t expected = 0, crc = 0;

	for (uint8_t i = 0; i < line->length; i++) {
		if (line->text[i] == '*')
			goto suffix;
	}
	return LINE_PLAIN;
suffix:
	if (line->length < 6 || line->text[body] != ' ' || line->text[body + 1] != '*')
		return LINE_DAMAGED;
	for (uint8_t i = body + 2; i < line->length; i++) {
		if (hex_digit(line->text[i]) < 0)
			return LINE_DAMAGED;
		expected = (uint16_t)(expected << 4) | (uint16_t)hex_digit(line->text[i]);
	}
	for (uint8_t i = 0; i < body; i++)
		crc = crc16_add(crc, (uint8_t)line->text[i]);
	if (crc != expected)
		return LINE_DAMAGED;
	line->text[body] = 0;
	line->length = body;
	return LINE_CHECKED;
}

/* Length of the key if the text begins with it, else 0. */
static uint8_t match(const char *text, text_t key)
{
	uint8_t n = 0;
	char c;

	while ((c = text_byte(key + n))) {
		if (text[n] != c)
			return 0;
		n++;
	}
	return n;
}

bool line_is(const char *text, text_t command)
{
	uint8_t n = match(text, command);

	return n && (text[n] == 0 || text[n] == ' ');
}

static const char *number(const char *text, uint32_t *value)
{
	uint32_t sum = 0;

	if (*text < '0' || *text > '9')
		return 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		uint8_t digit = (uint8_t)(*text - '0');

		if (sum > (UINT32_MAX - digit) / 10)
			return 0;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return *text == 0 || *text == ' ' ? text : 0;
}

static uint8_t find_key(const char *text, const struct parameter *table, uint8_t count)
{
	uint8_t i;

	for (i = 0; i < count; i++) {
		uint8_t n = match(text, table[i].key);

		if (n && text[n] == '=')
			break;
	}
	return i;
}

static bool is_within(uint32_t value, const struct parameter *parameter)
{
	uint32_t limit;

	text_copy(&limit, &parameter->min, sizeof(limit));
	if (value < limit)
		return false;
	text_copy(&limit, &parameter->max, sizeof(limit));
	return value <= limit;
}

static const char *skip(const char *text, bool spaces)
{
	while (*text && (*text == ' ') == spaces)
		text++;
	return text;
}

enum parse_error line_parameters(const char *text, const struct parameter *table, uint8_t count, uint8_t required,
				 uint32_t *values, uint8_t *at)
{
	uint8_t present = 0;

	for (text = skip(skip(text, false), true); *text; text = skip(text, true)) {
		*at = find_key(text, table, count);
		if (*at == count)
			return PARSE_UNKNOWN_KEY;
		if (present & (1 << *at))
			return PARSE_TWICE;
		present |= 1 << *at;
		while (*text++ != '=')
			;
		text = number(text, &values[*at]);
		if (!text)
			return PARSE_BAD_NUMBER;
		if (!is_within(values[*at], &table[*at]))
			return PARSE_OUT_OF_RANGE;
	}
	for (*at = 0; *at < count; ++*at) {
		if ((required & ~present) & (1 << *at))
			return PARSE_MISSING;
	}
	return PARSE_OK;
}
