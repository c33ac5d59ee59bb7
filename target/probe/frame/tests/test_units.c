/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "check.h"
#include "clock.h"
#include "units.h"

static void good(const char *text, int64_t expected_ns)
{
	int64_t ns = -1;

	check(parse_duration(text, NS_PER_US, &ns));
	if (ns != expected_ns)
		fprintf(stderr, "%s is %lld ns, not %lld\n", text, (long long)ns, (long long)expected_ns);
	check(ns == expected_ns);
}

static void bad(const char *text)
{
	int64_t ns;

	if (parse_duration(text, NS_PER_US, &ns))
		fprintf(stderr, "'%s' was understood\n", text);
	check(!parse_duration(text, NS_PER_US, &ns));
}

static void formatted(int64_t ns, const char *least, const char *most)
{
	char text[32];

	check(!strcmp(format_least(text, sizeof(text), ns), least));
	check(!strcmp(format_most(text, sizeof(text), ns), most));
}

static void rounded(void)
{
	formatted(0, "0 ns", "0 ns");
	formatted(-850, "-850 ns", "-850 ns");
	formatted(999, "999 ns", "999 ns");
	formatted(1000, "1.00 µs", "1.00 µs");
	formatted(1001, "1.00 µs", "1.01 µs");
	formatted(12345, "12.3 µs", "12.4 µs");
	formatted(194436, "194 µs", "195 µs");
	formatted(-194436, "-195 µs", "-194 µs");
	formatted(9991, "9.99 µs", "10.0 µs");
	formatted(99960, "99.9 µs", "100 µs");
	formatted(-99960, "-100 µs", "-99.9 µs");
	formatted(999001, "999 µs", "1.00 ms");
	formatted(-1001, "-1.01 µs", "-1.00 µs");
	formatted(1500000000, "1.50 s", "1.50 s");
	formatted(1234000000001, "1234 s", "1235 s");
}

int main(void)
{
	int64_t number;

	good("200us", 200 * NS_PER_US);
	good("200", 200 * NS_PER_US);
	good("1.5ms", 1500 * NS_PER_US);
	good("10m", 600 * NS_PER_S);
	good("5min", 300 * NS_PER_S);
	good("2h", 7200 * NS_PER_S);
	good("1d", 86400 * NS_PER_S);
	good("0.000000001s", 1);
	good("0.1", 100);
	good("7ns", 7);
	good("0", 0);
	bad("");
	bad("us");
	bad("-1us");
	bad("+1us");
	bad("1.us");
	bad(".5us");
	bad("1,5ms");
	bad("1 ms");
	bad("1us ");
	bad("1parsec");
	bad("0x10");
	bad("1e3");
	bad("nan");
	bad("99999999999999999999");
	bad("9999999999999999d");
	check(parse_integer("-12", &number) && number == -12);
	check(!parse_integer("", &number));
	check(!parse_integer("-", &number));
	check(!parse_integer("1.0", &number));
	check(!parse_integer("9223372036854775808", &number));
	rounded();
	return failures != 0;
}
