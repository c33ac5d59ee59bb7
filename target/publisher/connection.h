/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to the MQTT server: MQTT 3.1.1, QoS 1, TLS.
 *
 * An acknowledgement of the server does not mean that a message is stored; it only limits the messages in flight.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

#define CLIENT_ID 32

struct mosquitto;

struct connection {
	const struct options *options;
	void (*answer)(void *argument, const char *message, size_t size); /* of a taker */
	void (*order)(void *argument, const char *message, size_t size);  /* NULL: none are accepted */
	void *argument;
	char client_id[CLIENT_ID + 1]; /* random: a server ends the connection of a client whose ID another one states */
	struct mosquitto *client;      /* NULL: not connected */
	bool ready;               /* subscribed to the takers' answers */
	bool refused;
	int in_flight;            /* messages that the server has not acknowledged */
	int64_t progress_ns;         /* time of the last acknowledgement, or of the first publication in flight */
	int64_t connected_ns;
	int64_t next_ns, backoff_ns; /* next attempt to connect, and the wait after a failure */
};

/* Connects if that is due, and waits for at most a second for messages. */
void connection_serve(struct connection *connection);
/* Whether a message can be published now. */
bool connection_has_room(const struct connection *connection);
void connection_publish(struct connection *connection, const void *payload, size_t size);
/* Sends the answer to an order. */
void connection_reply(struct connection *connection, const void *payload, size_t size);
/* The server works: the next attempt to connect need not wait long. */
void connection_reset_backoff(struct connection *connection);

#endif
