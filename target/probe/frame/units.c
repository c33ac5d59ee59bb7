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

/* The unit of the last of three digits. */
static int64_t last_digit_ns(int64_t ns, int64_t unit)
{
	int64_t magnitude = ns < 0 ? -ns : ns;

	return magnitude >= 100 * unit ? unit : magnitude >= 10 * unit ? unit / 10 : unit / 100;
}

static size_t unit_of(int64_t ns)
{
	size_t unit = 0;

	for (int64_t least = 1000; unit < 3 && (ns >= least || ns <= -least); least *= 1000)
		unit++;
	return unit;
}

static char *format_steps(char *buffer, size_t size, int64_t ns, size_t unit, int64_t step)
{
	static const char *const names[] = {"ns", "µs", "ms", "s"};
	static const int64_t lengths[] = {1, NS_PER_US, NS_PER_MS, NS_PER_S};
	int64_t magnitude = ns < 0 ? -ns : ns, length = lengths[unit];
	unsigned behind = (unsigned)(magnitude % length / step) % 100;
	char fraction[8] = "";

	if (step == length / 10)
		snprintf(fraction, sizeof(fraction), ".%u", behind % 10);
	else if (step != length)
		snprintf(fraction, sizeof(fraction), ".%02u", behind);
	snprintf(buffer, size, "%s%lld%s %s", ns < 0 ? "-" : "", (long long)(magnitude / length), fraction, names[unit]);
	return buffer;
}

/* Rounding up may give a number that needs a digit less behind its point: it has its zero there, and loses it. */
static char *format_rounded(char *buffer, size_t size, int64_t ns, bool up)
{
	static const int64_t lengths[] = {1, NS_PER_US, NS_PER_MS, NS_PER_S};
	size_t unit = unit_of(ns);
	int64_t step, rest;

	if (unit == 0) {
		snprintf(buffer, size, "%lld ns", (long long)ns);
		return buffer;
	}
	step = last_digit_ns(ns, lengths[unit]);
	rest = ns % step;
	if (rest < 0)
		rest += step;
	ns -= rest;
	if (rest && up)
		ns += step;
	unit = unit_of(ns);
	return format_steps(buffer, size, ns, unit, unit == 0 ? 1 : last_digit_ns(ns, lengths[unit]));
}

char *format_most(char *buffer, size_t size, int64_t ns)
{
	return format_rounded(buffer, size, ns, true);
}

char *format_least(char *buffer, size_t size, int64_t ns)
{
	return format_rounded(buffer, size, ns, false);
}
