/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
	{"ns", 1},
	{"us", NS_PER_US},
	{"µs", NS_PER_US},
	{"ms", NS_PER_MS},
	{"s", NS_PER_S},
	{"m", 60 * NS_PER_S},
	{"min", 60 * NS_PER_S},
	{"h", 3600 * NS_PER_S},
	{"d", 86400 * NS_PER_S},
};

static int64_t unit_ns(const char *name, int64_t plain_ns)
{
	if (!*name)
		return plain_ns;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(name, units[i].name))
			return units[i].ns;
	return 0;
}

/* Digits from *text on; false without any or when they do not fit. */
static bool parse_digits(const char **text, int64_t *value)
{
	if (!isdigit((unsigned char)**text))
		return false;
	for (*value = 0; isdigit((unsigned char)**text); ++*text)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, **text - '0', value))
			return false;
	return true;
}

bool parse_duration(const char *text, int64_t plain_ns, int64_t *ns)
{
	const char *fraction = "", *rest = text;
	int64_t whole, unit, scale;

	if (!parse_digits(&rest, &whole))
		return false;
	if (*rest == '.') {
		fraction = ++rest;
		if (!isdigit((unsigned char)*rest))
			return false;
		while (isdigit((unsigned char)*rest))
			rest++;
	}
	unit = unit_ns(rest, plain_ns);
	if (unit == 0 || __builtin_mul_overflow(whole, unit, ns))
		return false;
	for (scale = unit / 10; isdigit((unsigned char)*fraction); fraction++, scale /= 10)
		if (__builtin_add_overflow(*ns, (*fraction - '0') * scale, ns))
			return false;
	return true;
}

bool parse_integer(const char *text, int64_t *value)
{
	bool negative = *text == '-';

	text += negative;
	if (!parse_digits(&text, value) || *text)
		return false;
	*value = negative ? -*value : *value;
	return true;
}

char *format_duration(char *buffer, size_t size, int64_t ns)
{
	static const char *const names[] = {"ns", "µs", "ms", "s"};
	double value = (double)ns;
	size_t unit = 0;

	while (unit < 3 && (value >= 999.5 || value <= -999.5)) {
		value /= 1000;
		unit++;
	}
	if (unit == 0)
		snprintf(buffer, size, "%lld ns", (long long)ns);
	else
		snprintf(buffer, size, "%.*f %s", value >= 99.95 || value <= -99.95 ? 0 : value >= 9.995 || value <= -9.995 ? 1 : 2,
			 value, names[unit]);
	return buffer;
}
