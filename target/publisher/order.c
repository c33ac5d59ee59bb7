/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "order.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json_scan.h"

#define HEX "0123456789abcdef"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define MAX_NUMBER (INT64_C(1) << 53)
#define US_PER_S 1000000
#define MAX_LIFE_S (7 * 86400)
#define MAX_AHEAD_S 300 /* allowed difference between the clocks of operator and board */
#define MAX_DIGITS 6

static bool word(const struct order *order, const char *key, const char *letters, char *out, size_t room)
{
	struct json_value value;

	return json_member(order->line, order->line_size, key, &value) && json_plain(&value, out, room) &&
	       !out[strspn(out, letters)] && strlen(out) == value.size - 2;
}

static bool number(const struct order *order, const char *key, int64_t *out)
{
	struct json_value value;

	return json_member(order->line, order->line_size, key, &value) && json_count(&value, MAX_NUMBER, out);
}

/* Refuses duplicate members, other members and spaces. */
static bool is_exact(const struct order *order)
{
	static char text[ORDER_MAX + 512];
	int size = snprintf(text, sizeof(text),
			    "{\"order\":1,\"id\":\"%s\",\"machine\":\"%s\",\"issued_us\":%" PRId64 ",\"expires_s\":%" PRId64
			    ",\"by\":\"%s\",\"action\":\"%s\",\"value\":\"%s\"}\n", order->id, order->machine, order->issued_us,
			    order->expires_s, order->by, order->action, order->value);

	return size > 0 && (size_t)size == order->line_size && !memcmp(text, order->line, order->line_size);
}

bool order_parse(struct order *order, const char *message, size_t size)
{
	const char *feed = size <= ORDER_MAX ? memchr(message, '\n', size) : NULL;

	if (!feed)
		return false;
	order->line = message;
	order->line_size = (size_t)(feed - message) + 1;
	order->signature = feed + 1;
	order->signature_size = size - order->line_size;
	return word(order, "id", HEX, order->id, sizeof(order->id)) && *order->id &&
	       word(order, "machine", HEX, order->machine, sizeof(order->machine)) &&
	       number(order, "issued_us", &order->issued_us) && number(order, "expires_s", &order->expires_s) &&
	       word(order, "by", LETTERS "@._-", order->by, sizeof(order->by)) && isalnum((unsigned char)*order->by) &&
	       word(order, "action", LETTERS, order->action, sizeof(order->action)) &&
	       word(order, "value", LETTERS "+/=._-", order->value, sizeof(order->value)) && is_exact(order);
}

const char *order_fault(const struct order *order, const char *machine, int64_t last_us, int64_t now_s)
{
	int64_t issued_s = order->issued_us / US_PER_S;

	if (strcmp(order->machine, machine) != 0)
		return "foreign";
	if (order->expires_s <= now_s)
		return "expired";
	if (issued_s > now_s + MAX_AHEAD_S)
		return "early";
	if (order->expires_s - issued_s > MAX_LIFE_S)
		return "long-lived";
	if (order->issued_us <= last_us)
		return "replayed";
	return order->signature_size ? NULL : "unsigned";
}

static bool is_duration(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	const char *unit = text + digits;

	return digits && digits <= MAX_DIGITS && *text != '0' &&
	       (!strcmp(unit, "ms") || !strcmp(unit, "s") || !strcmp(unit, "min") || !strcmp(unit, "h"));
}

bool order_is_known(const struct order *order)
{
	if (!strcmp(order->action, "check"))
		return !*order->value;
	if (!strcmp(order->action, "interval") || !strcmp(order->action, "trace"))
		return is_duration(order->value);
	return !strcmp(order->action, "plan") && *order->value && *order->value != '=' &&
	       !order->value[strspn(order->value, LETTERS "+/=")];
}
