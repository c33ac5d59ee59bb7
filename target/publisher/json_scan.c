/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json_scan.h"

#include <string.h>

struct scan {
	const char *at, *end;
};

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end && memchr(" \t\r\n", *scan->at, 4))
		scan->at++;
}

static bool take(struct scan *scan, char expected)
{
	skip_space(scan);
	if (scan->at == scan->end || *scan->at != expected)
		return false;
	scan->at++;
	return true;
}

/* From an opening quote to behind the closing one. */
static bool skip_string(struct scan *scan)
{
	for (scan->at++; scan->at < scan->end; scan->at++) {
		if (*scan->at == '\\')
			scan->at++;
		else if (*scan->at == '"')
			return scan->at++, true;
		if (scan->at >= scan->end)
			break;
	}
	scan->at = scan->end;
	return false;
}

/* Only counts brackets: the content is checked by its reader. */
static bool skip_nested(struct scan *scan)
{
	size_t depth = 0;

	while (scan->at < scan->end) {
		char now = *scan->at;

		if (now == '"') {
			if (!skip_string(scan))
				return false;
			continue;
		}
		scan->at++;
		if (now == '{' || now == '[')
			depth++;
		else if ((now == '}' || now == ']') && --depth == 0)
			return true;
	}
	return false;
}

static bool skip_value(struct scan *scan)
{
	const char *begin = scan->at;

	if (scan->at == scan->end)
		return false;
	if (*scan->at == '"')
		return skip_string(scan);
	if (*scan->at == '{' || *scan->at == '[')
		return skip_nested(scan);
	while (scan->at < scan->end && !memchr(",}] \t\r\n", *scan->at, 7))
		scan->at++;
	return scan->at > begin;
}

static bool scan_value(struct scan *scan, struct json_value *value)
{
	skip_space(scan);
	value->text = scan->at;
	if (!skip_value(scan))
		return false;
	value->size = (size_t)(scan->at - value->text);
	return true;
}

bool json_is(const struct json_value *value, const char *content)
{
	size_t length = strlen(content);

	return value->size == length + 2 && value->text[0] == '"' && !memcmp(value->text + 1, content, length);
}

bool json_member(const char *text, size_t size, const char *key, struct json_value *value)
{
	struct scan scan = {text, text + size};
	struct json_value name;

	if (!take(&scan, '{'))
		return false;
	do {
		if (!scan_value(&scan, &name) || !take(&scan, ':') || !scan_value(&scan, value))
			return false;
		if (json_is(&name, key))
			return true;
	} while (take(&scan, ','));
	return false;
}

bool json_count(const struct json_value *value, int64_t max, int64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < value->size; i++) {
		char digit = value->text[i];

		if (digit < '0' || digit > '9' || *number > (max - (digit - '0')) / 10)
			return false;
		*number = 10 * *number + (digit - '0');
	}
	return value->size > 0;
}

bool json_plain(const struct json_value *value, char *out, size_t room)
{
	size_t length = value->size >= 2 ? value->size - 2 : 0;

	if (value->size < 2 || value->text[0] != '"' || length >= room || memchr(value->text, '\\', value->size))
		return false;
	memcpy(out, value->text + 1, length);
	out[length] = '\0';
	return true;
}
