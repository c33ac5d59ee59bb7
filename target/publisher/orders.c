/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "last_order.h"
#include "order.h"
#include "log.h"

#define NAMESPACE "fastenough-order" /* signatures made for another purpose are refused */
#define MINUTE_NS (60 * NS_PER_S)
#define MAX_IN_MINUTE 60 /* verification takes time beside real-time tasks */
#define VERIFY_NS (10 * NS_PER_S)
#define DETAIL 128

static bool too_many(struct orders *orders)
{
	int64_t now_ns = boot_ns();

	if (!orders->minute_ns || now_ns - orders->minute_ns > MINUTE_NS) {
		orders->minute_ns = now_ns;
		orders->in_minute = 0;
	}
	return ++orders->in_minute > MAX_IN_MINUTE;
}

/* Whether the named signer has signed it, with a key of the file of allowed signers. */
static bool is_signed(const struct order *order, const char *signers, char detail[DETAIL])
{
	const char *const words[] = {"ssh-keygen", "-Y", "verify", "-f", signers, "-I", order->by, "-n", NAMESPACE, "-s",
				     CHILD_FILE, NULL};
	struct child child = {
		.words = words, .limit_ns = VERIFY_NS,
		.input = order->line, .input_size = order->line_size,
		.file = order->signature, .file_size = order->signature_size,
	};

	return child_run(&child, detail, DETAIL) == 0;
}

/* Reason to refuse the order; NULL if it is accepted, and then recorded. */
static const char *admit(const struct order *order, const struct options *options, char detail[DETAIL])
{
	const char *fault;
	int64_t last_us;

	if (!last_order_read(options->state, &last_us)) {
		snprintf(detail, DETAIL, "%s", strerror(errno));
		return "state";
	}
	fault = order_fault(order, options->board.machine, last_us, time(NULL));
	if (!fault && !is_signed(order, options->signers, detail))
		fault = "signature";
	if (!fault && !last_order_write(options->state, order->issued_us)) {
		snprintf(detail, DETAIL, "%s", strerror(errno));
		return "state";
	}
	return fault;
}

/* Reason why it was not carried out; NULL if it was. */
static const char *execute(const struct order *order, struct orders *orders, char detail[DETAIL])
{
	const char *const words[] = {orders->options->executor, order->action, order->value, NULL};
	struct child child = {
		.words = words, .limit_ns = orders->limit_ns,
		.input = order->line, .input_size = order->line_size + order->signature_size,
		.rest = &orders->attachment,
	};

	*detail = '\0';
	if (!order_is_known(order))
		return "unknown";
	if (!strcmp(order->action, "check"))
		return NULL;
	if (!orders->options->executor)
		return "unsupported";
	return child_run(&child, detail, DETAIL) ? "failed" : NULL;
}

/* Replaces unprintable characters and those that JSON would escape. */
static void sanitize_text(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			*text = '?';
}

bool orders_handle(struct orders *orders, const char *message, size_t size, char answer[ORDERS_ANSWER])
{
	static struct order order;
	static char attachment[ORDERS_ATTACHMENT];
	char detail[DETAIL] = "";
	const char *fault = "malformed";
	bool parsed;

	orders->attachment = (struct child_rest){.bytes = attachment, .room = sizeof(attachment)};
	if (too_many(orders)) {
		log_once(LOG_ORDER, "more than %d orders in a minute; ignoring the rest", MAX_IN_MINUTE);
		return false;
	}
	parsed = order_parse(&order, message, size);
	if (parsed) {
		fault = admit(&order, orders->options, detail);
		if (!fault) {
			fault = execute(&order, orders, detail);
			log_line("order %s of %s, %s: %s", order.id, order.by, order.action, fault ? fault : "done");
		}
	}
	if (fault) {
		orders->attachment.size = 0;
		log_once(LOG_ORDER, "refused an order: %s", fault);
	}
	sanitize_text(detail);
	snprintf(answer, ORDERS_ANSWER, "{\"order\":\"%s\",\"state\":\"%s\",\"reason\":\"%s\",\"detail\":\"%s\"}",
		 parsed ? order.id : "", fault ? "refused" : "done", fault ? fault : "", detail);
	return true;
}
