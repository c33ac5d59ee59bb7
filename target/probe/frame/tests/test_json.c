/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "check.h"
#include "json.h"

static struct json json;

static void holds(const char *expected)
{
	json_raw(&json, "", 1);
	if (strcmp(json.text, expected))
		fprintf(stderr, "is  %s\nnot %s\n", json.text, expected);
	check(!strcmp(json.text, expected));
	json_clear(&json);
}

static void text(const char *value, const char *expected)
{
	json_text(&json, value);
	holds(expected);
}

static void means(void)
{
	json_open(&json, '[');
	json_mean(&json, -7, 2);
	json_mean(&json, 1000000, 3);
	json_mean(&json, 1793000000000000000, 1); /* a wall clock was set from 1970 */
	json_mean(&json, -1793000000000000000, 2);
	json_close(&json, ']');
	holds("[-3.500,333333.333,1793000000000000000,-896500000000000000]");
}

static void pairs(void)
{
	json_open(&json, '[');
	json_pair(&json, INT64_MIN, INT64_MAX);
	json_pair(&json, 0, -1);
	json_pair(&json, 9, 10);
	json_pair(&json, 99, 100);
	json_close(&json, ']');
	holds("[[-9223372036854775808,9223372036854775807],[0,-1],[9,10],[99,100]]");
}

/* Of a text that grows meanwhile. */
static void repetitions(void)
{
	size_t begin, end;

	json_open(&json, '{');
	json_key(&json, "a");
	begin = json.used;
	json_pair(&json, 1, 2);
	end = json.used;
	json_key(&json, "b");
	json.room = json.used;
	json_repeat(&json, begin, end);
	json_close(&json, '}');
	holds("{\"a\":[1,2],\"b\":[1,2]}");
}

static void texts(void)
{
	text("plain", "\"plain\"");
	text("a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"");
	text("\n\t\x01\x1f", "\"\\u000a\\u0009\\u0001\\u001f\"");
	text("µs → é 𝄞", "\"µs → é 𝄞\"");
	text("\xff", "\"\\ufffd\"");
	text("a\xc3", "\"a\\ufffd\"");              /* cut short */
	text("\xc0\xaf", "\"\\ufffd\\ufffd\"");      /* overlong */
	text("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* a surrogate */
	text("ends in colon:", "\"ends in colon:\"");
	text(NULL, "null");
}

int main(void)
{
	texts();
	pairs();
	repetitions();
	json_open(&json, '{');
	json_member_int(&json, "least", INT64_MIN);
	json_member_uint(&json, "most", UINT64_MAX);
	json_member_text(&json, "text", "x:");
	json_key(&json, "list");
	json_open(&json, '[');
	json_open(&json, '[');
	json_int(&json, -1);
	json_uint(&json, 0);
	json_close(&json, ']');
	json_open(&json, '[');
	json_close(&json, ']');
	json_bool(&json, true);
	json_null(&json);
	json_close(&json, ']');
	json_key(&json, "fixed");
	json_fixed(&json, -1002);
	json_close(&json, '}');
	holds("{\"least\":-9223372036854775808,\"most\":18446744073709551615,\"text\":\"x:\","
	      "\"list\":[[-1,0],[],true,null],\"fixed\":-1.002}");

	means();
	json_decimal(&json, 0, 0);
	holds("\"0\"");
	json_decimal(&json, UINT64_MAX, 0);
	holds("\"18446744073709551615\"");
	json_decimal(&json, UINT64_MAX, UINT64_MAX);
	holds("\"340282366920938463463374607431768211455\"");
	json_decimal(&json, 0, 1);
	holds("\"18446744073709551616\"");
	json_free(&json);
	return failures != 0;
}
