/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to the MQTT server: MQTT 3.1.1, QoS 1, TLS.
 *
 * The server's acknowledgement of a message says nothing about storage: it only limits how many are under way.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

struct mosquitto;

struct connection {
	const struct options *options;
	void (*answer)(void *argument, const char *message, size_t size); /* of a taker */
	void (*order)(void *argument, const char *message, size_t size);  /* NULL: none are accepted */
	void *argument;
	struct mosquitto *client; /* NULL: not connected */
	bool ready;               /* takers' answers arrive */
	bool refused;
	int under_way;            /* messages that the server has not acknowledged */
	int64_t moved_ns;         /* when one was acknowledged, or the first of these published */
	int64_t connected_ns;
	int64_t next_ns, wait_ns; /* when to connect again */
};

/* Connects where that is due, and waits for at most a second for what arrives. */
void connection_serve(struct connection *connection);
/* Whether a message can be published now. */
bool connection_has_room(const struct connection *connection);
void connection_publish(struct connection *connection, const void *payload, size_t size);
/* Sends the answer to an order. */
void connection_reply(struct connection *connection, const char *answer);
/* The other side works: the next connection need not wait. */
void connection_works(struct connection *connection);

#endif
