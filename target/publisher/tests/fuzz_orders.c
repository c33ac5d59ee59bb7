/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders of every kind, under the sanitizers: a valid one with bytes changed, removed, inserted or doubled, and lines of
 * pieces joined at random.  What is accepted must be exactly the text of an order; nothing unsigned is ever carried out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "last_order.h"
#include "order.h"
#include "orders.h"

#define ROUNDS 300000
#define MACHINE "0123456789abcdef0123456789abcdef"
#define VALID                                                                                                              \
	"{\"order\":1,\"id\":\"00ff00ff00ff00ff\",\"machine\":\"" MACHINE "\",\"issued_us\":1800000000000000,"             \
	"\"expires_s\":1800000600,\"by\":\"ann@lab\",\"action\":\"interval\",\"value\":\"60s\"}\n"

static const char *const pieces[] = {
	"{", "}", "\"", ":", ",", "\\", " ", "\n", "-", "9", "99999999999999999999", "\"order\":1,", "\"id\":\"00ff\",",
	"\"machine\":\"" MACHINE "\",", "\"issued_us\":1,", "\"expires_s\":2,", "\"by\":\"-f\",", "\"by\":\"ann\",",
	"\"action\":\"check\",", "\"value\":\"../../etc\"", "\xff", "\r", "%s", "[[[[", "\"value\":\"\"}\n",
};

static struct order order;

static unsigned draw(unsigned below)
{
	return (unsigned)random() % below;
}

static size_t join(char *text)
{
	size_t size = 0;

	for (unsigned count = draw(14); count; count--) {
		const char *piece = pieces[draw(sizeof(pieces) / sizeof(*pieces))];

		size += (size_t)sprintf(text + size, "%s", piece);
	}
	return size;
}

static size_t change(char *text)
{
	size_t size = strlen(VALID), at, count;

	memcpy(text, VALID, size);
	for (unsigned changes = 1 + draw(3); changes && size > 40; changes--) {
		at = draw((unsigned)size - 30);
		count = 1 + draw(29);
		switch (draw(4)) {
		case 0:
			text[at] = (char)draw(256);
			break;
		case 1:
			memmove(text + at, text + at + count, size - at - count);
			size -= count;
			break;
		case 2:
			memmove(text + at + count, text + at, size - at);
			size += count;
			break;
		default:
			text[at + count] = text[at];
		}
	}
	return size;
}

/* The same text again, of what was read. */
static void check_accepted(void)
{
	static char text[2 * ORDER_MAX];
	int size = snprintf(text, sizeof(text),
			    "{\"order\":1,\"id\":\"%s\",\"machine\":\"%s\",\"issued_us\":%" PRId64 ",\"expires_s\":%" PRId64
			    ",\"by\":\"%s\",\"action\":\"%s\",\"value\":\"%s\"}\n", order.id, order.machine, order.issued_us,
			    order.expires_s, order.by, order.action, order.value);

	CHECK((size_t)size == order.line_size && !memcmp(text, order.line, order.line_size));
	CHECK(*order.by != '-' && !strpbrk(order.by, "/*?!, ") && order.issued_us >= 0 && order.expires_s >= 0);
}

static bool parse(const char *text, size_t size)
{
	char *copy = malloc(size + !size); /* of exactly this size: the sanitizer sees what is read behind it */
	bool accepted;

	CHECK(copy);
	memcpy(copy, text, size);
	accepted = order_parse(&order, copy, size);
	if (accepted)
		check_accepted();
	free(copy);
	return accepted;
}

static void check_any(void)
{
	unsigned accepted = 0;
	char text[2048];

	for (int round = 0; round < ROUNDS; round++)
		accepted += parse(text, draw(3) ? change(text) : join(text));
	CHECK(accepted > ROUNDS / 1000 && accepted < ROUNDS / 4);
}

static const char *fault(const char *machine, int64_t last_us, int64_t now_s)
{
	static char text[] = VALID "signature";

	CHECK(order_parse(&order, text, sizeof(text) - 1));
	return order_fault(&order, machine, last_us, now_s);
}

static void check_limits(void)
{
	static const int64_t issued_s = 1800000000, issued_us = 1000000 * INT64_C(1800000000);

	CHECK(!fault(MACHINE, 0, issued_s) && !fault(MACHINE, issued_us - 1, issued_s + 599));
	CHECK(!strcmp(fault(MACHINE, issued_us, issued_s), "replayed"));
	CHECK(!strcmp(fault(MACHINE, 0, issued_s + 600), "expired"));
	CHECK(!strcmp(fault(MACHINE, 0, issued_s - 301), "early") && !fault(MACHINE, 0, issued_s - 300));
	CHECK(!strcmp(fault("0123456789abcdef0123456789abcdee", 0, issued_s), "foreign"));
	order.expires_s = issued_s + 7 * 86400 + 1;
	CHECK(!strcmp(order_fault(&order, MACHINE, 0, issued_s), "long-lived"));
	order.expires_s--;
	order.signature_size = 0;
	CHECK(!strcmp(order_fault(&order, MACHINE, 0, issued_s), "unsigned"));
}

static bool known(const char *action, const char *value)
{
	snprintf(order.action, sizeof(order.action), "%s", action);
	snprintf(order.value, sizeof(order.value), "%s", value);
	return order_is_known(&order);
}

static void check_actions(void)
{
	CHECK(known("check", "") && known("interval", "60s") && known("trace", "10min") && known("plan", "cGxhbg=="));
	CHECK(!known("check", "1") && !known("interval", "0s") && !known("interval", "1234567s") && !known("interval", "60"));
	CHECK(!known("trace", "-1s") && !known("plan", "") && !known("plan", "-x") && !known("plan", "../x") && !known("", ""));
}

/* Each message is answered in one line; a file that is no time of an order, or cannot be written, refuses all. */
static void check_answers(void)
{
	struct options options = {.board.machine = MACHINE, .signers = "/dev/null"};
	char folder[] = "/tmp/fuzz-orders-XXXXXX", state[64], text[2048], answer[ORDERS_ANSWER];
	struct orders orders = {.options = &options};
	int64_t last_us;
	int answers = 0;

	CHECK(mkdtemp(folder));
	snprintf(state, sizeof(state), "%s/last", folder);
	options.state = state;
	for (int round = 0; round < 100; round++) {
		*answer = '\0';
		answers += orders_handle(&orders, text, join(text), answer);
		CHECK(!strchr(answer, '\n') && !strstr(answer, "done"));
	}
	CHECK(answers == 60);
	CHECK(last_order_read(state, &last_us) && last_us == 0);
	CHECK(last_order_write(state, 7) && last_order_read(state, &last_us) && last_us == 7);
	for (int size = 0; size < 2; size++) {
		CHECK(!truncate(state, size));
		CHECK(!last_order_read(state, &last_us));
	}
	unlink(state);
	CHECK(!rmdir(folder));
	CHECK(last_order_read(state, &last_us) && !last_order_write(state, 7));
}

/* What follows the first line arrives whole, or not at all. */
static void check_rest(struct child child)
{
	static const char *const print[] = {"printf", "%s", "line\nrest\nof it", NULL}, *const copy[] = {"cat", NULL};
	char bytes[12], line[8];
	struct child_rest rest = {.bytes = bytes, .room = sizeof(bytes)};
	static char block[9000];

	child.words = print;
	child.rest = &rest;
	CHECK(child_run(&child, line, sizeof(line)) == 0 && !strcmp(line, "line") && rest.size == 10);
	CHECK(!memcmp(bytes, "rest\nof it", 10));
	rest.room = 9;
	CHECK(child_run(&child, line, sizeof(line)) == 0 && !strcmp(line, "line") && rest.size == 0);
	memset(block, 'x', sizeof(block)); /* a long line is cut, and is no rest */
	child.words = copy;
	child.input = block;
	child.input_size = sizeof(block);
	CHECK(child_run(&child, line, sizeof(line)) == 0 && !strcmp(line, "xxxxxxx") && rest.size == 0);
}

static void check_children(void)
{
	static const char *const copy[] = {"cat", "-", CHILD_FILE, NULL}, *const chatter[] = {"yes", NULL},
				 *const missing[] = {"/nowhere/program", NULL}, *const silent[] = {"sleep", "100", NULL},
				 *const leaving[] = {"sh", "-c", "sleep 100 & exit 0", NULL};
	struct child child = {.words = copy, .input = "a", .input_size = 1, .file = "b\nc", .file_size = 3,
			      .limit_ns = INT64_C(10000000000)};
	char line[8];

	CHECK(child_run(&child, line, sizeof(line)) == 0 && !strcmp(line, "ab"));
	check_rest(child);
	child.words = missing;
	CHECK(child_run(&child, line, sizeof(line)) == -1 && !strcmp(line, "/nowher"));
	child.limit_ns = INT64_C(300000000);
	child.words = chatter;
	CHECK(child_run(&child, line, sizeof(line)) == -1 && !strcmp(line, "y"));
	child.words = silent;
	CHECK(child_run(&child, line, sizeof(line)) == -1 && !*line);
	child.words = leaving; /* what it left behind is killed, so it did not succeed */
	CHECK(child_run(&child, line, sizeof(line)) == -1);
}

int main(void)
{
	static char huge[2 * ORDER_MAX];

	check_any();
	check_limits();
	check_actions();
	check_answers();
	check_children();
	memset(huge, '\n', sizeof(huge));
	CHECK(!parse(huge, sizeof(huge)) && !parse(huge, 0) && parse(VALID, strlen(VALID)));
	return 0;
}
