/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough-publisher: publishes what a board's service records, until takers have stored it; see docs/fleet-boards.md.
 *
 * It may be killed at any time: its state is the ring, the takers' answers and the time of the newest order.
 */
#include <mosquitto.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "boot_clock.h"
#include "connection.h"
#include "delivery.h"
#include "options.h"
#include "orders.h"
#include "ring_view.h"

#define SCAN_NS NS_PER_S

struct publisher {
	struct connection connection;
	struct ring_view ring;
	struct orders orders;
	int64_t scanned_ns;
	bool was_ready;
};

static void handle_answer(void *argument, const char *message, size_t size)
{
	struct publisher *publisher = argument;

	if (delivery_answer(&publisher->ring, message, size, boot_ns()))
		connection_reset_backoff(&publisher->connection);
}

/* The answer in a line; behind it the attachment, if there is one. */
static void handle_order(void *argument, const char *message, size_t size)
{
	static char reply[ORDERS_ANSWER + ORDERS_ATTACHMENT];
	struct publisher *publisher = argument;
	const struct child_rest *attachment = &publisher->orders.attachment;
	size_t length;

	if (!orders_handle(&publisher->orders, message, size, reply))
		return;
	length = strlen(reply);
	if (attachment->size) {
		reply[length++] = '\n';
		memcpy(reply + length, attachment->bytes, attachment->size);
		length += attachment->size;
	}
	connection_reply(&publisher->connection, reply, length);
}

static void scan_when_due(struct publisher *publisher)
{
	int64_t now_ns = boot_ns();

	if (now_ns - publisher->scanned_ns < SCAN_NS)
		return;
	ring_view_scan(&publisher->ring);
	publisher->scanned_ns = now_ns;
}

static bool publish_next(struct publisher *publisher)
{
	struct recording *recording = delivery_next(&publisher->ring, boot_ns());
	struct chunk chunk;

	if (!recording)
		return false;
	chunk = chunk_make(&publisher->connection.options->board, recording, publisher->ring.folder);
	if (!chunk.payload) {
		recording->answered = false; /* nothing more until the next answer */
		return false;
	}
	connection_publish(&publisher->connection, chunk.payload, chunk.size);
	delivery_sent(recording, chunk.after, boot_ns());
	chunk_free(&chunk);
	return true;
}

static void publish(struct publisher *publisher)
{
	if (publisher->connection.ready && !publisher->was_ready)
		delivery_restart(&publisher->ring);
	publisher->was_ready = publisher->connection.ready;
	while (connection_has_room(&publisher->connection) && publish_next(publisher))
		;
}

int main(int argc, char **argv)
{
	struct options options = options_parse(argc, argv);
	struct publisher publisher = {
		.connection = {
			.options = &options, .answer = handle_answer, .order = options.signers ? handle_order : NULL,
			.argument = &publisher, .backoff_ns = NS_PER_S,
		},
		.orders = {.options = &options, .limit_ns = ORDERS_LIMIT_NS},
		.ring = {.path = options.ring, .folder = -1},
	};
	unsigned seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = (unsigned)boot_ns();
	srandom(seed);
	signal(SIGPIPE, SIG_IGN); /* TLS writes to a closed connection */
	mosquitto_lib_init();
	for (;;) {
		scan_when_due(&publisher);
		publish(&publisher);
		connection_serve(&publisher.connection);
	}
}
