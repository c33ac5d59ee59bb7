/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "connection.h"

#include <errno.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "boot_clock.h"
#include "log.h"

#define TICK_MS 1000
#define KEEPALIVE_S 60
#define MAX_IN_FLIGHT 2
#define MAX_BACKOFF_NS (300 * NS_PER_S)
#define STABLE_NS (60 * NS_PER_S)
#define STUCK_NS (1800 * NS_PER_S) /* a slow link needs minutes for one message */
#define TOPIC 64
#define REFUSED_SUBSCRIPTION 0x80
#define SIGNED "/signed"

static void on_connect(struct mosquitto *client, void *argument, int status)
{
	struct connection *connection = argument;
	char answers[TOPIC], orders[TOPIC];
	char *const topics[] = {answers, orders};

	if (status) {
		log_once(LOG_SERVER, "%s:%d refuses the connection: %s", connection->options->server, connection->options->port,
			 mosquitto_connack_string(status));
		connection->refused = true;
		return;
	}
	snprintf(answers, sizeof(answers), "fe/order/%s", connection->options->board.machine);
	snprintf(orders, sizeof(orders), "fe/order/%s" SIGNED, connection->options->board.machine);
	mosquitto_subscribe_multiple(client, NULL, connection->order ? 2 : 1, topics, 0, 0, NULL);
}

/* Publishing begins only after the subscription, so that no answer is missed. */
static void on_subscribe(struct mosquitto *client, void *argument, int id, int count, const int *granted)
{
	struct connection *connection = argument;

	(void)client;
	(void)id;
	if (count < 1 || granted[0] >= REFUSED_SUBSCRIPTION) {
		log_once(LOG_SERVER, "%s:%d permits no subscription to fe/order/%s; allow it for this board",
			 connection->options->server, connection->options->port, connection->options->board.machine);
		connection->refused = true;
		return;
	}
	if (count > 1 && granted[1] >= REFUSED_SUBSCRIPTION)
		log_once(LOG_ORDER, "%s:%d permits no subscription to fe/order/%s" SIGNED "; no order arrives",
			 connection->options->server, connection->options->port, connection->options->board.machine);
	log_once(LOG_SERVER, "connected to %s:%d", connection->options->server, connection->options->port);
	connection->ready = true;
}

static void on_publish(struct mosquitto *client, void *argument, int id)
{
	struct connection *connection = argument;

	(void)client;
	(void)id;
	connection->in_flight--;
	connection->progress_ns = boot_ns();
}

static void on_message(struct mosquitto *client, void *argument, const struct mosquitto_message *message)
{
	struct connection *connection = argument;
	size_t length = strlen(message->topic), tail = strlen(SIGNED);
	bool is_order = length >= tail && !strcmp(message->topic + length - tail, SIGNED);
	void (*take)(void *, const char *, size_t) = is_order ? connection->order : connection->answer;

	(void)client;
	if (message->payloadlen > 0 && take)
		take(connection->argument, message->payload, (size_t)message->payloadlen);
}

/* Waits up to half longer, so that the boards of a fleet do not stay in step. */
static void disconnect(struct connection *connection)
{
	int64_t now_ns = boot_ns();

	if (connection->connected_ns && now_ns - connection->connected_ns > STABLE_NS)
		connection_reset_backoff(connection);
	connection->next_ns = now_ns + connection->backoff_ns + connection->backoff_ns / 2 * (random() % 1000) / 1000;
	connection->backoff_ns = connection->backoff_ns < MAX_BACKOFF_NS / 2 ? 2 * connection->backoff_ns : MAX_BACKOFF_NS;
	mosquitto_destroy(connection->client);
	connection->client = NULL;
	connection->connected_ns = 0;
	connection->ready = connection->refused = false;
	connection->in_flight = 0;
}

/* The library reports certificate errors only in its log. */
static void on_log(struct mosquitto *client, void *argument, int level, const char *text)
{
	struct connection *connection = argument;

	(void)client;
	if (level == MOSQ_LOG_ERR && !connection->ready)
		log_once(LOG_SERVER, "%s:%d: %s", connection->options->server, connection->options->port, text);
}

static const char *reason(int status)
{
	return status == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(status);
}

static int prepare(struct mosquitto *client, const struct options *options)
{
	int status = MOSQ_ERR_SUCCESS;

	if (options->user)
		status = mosquitto_username_pw_set(client, options->user, options->password);
	if (!status && !options->without_tls && !options->ca)
		status = mosquitto_int_option(client, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
	if (!status && !options->without_tls && (options->ca || options->key))
		status = mosquitto_tls_set(client, options->ca, options->ca ? NULL : "/etc/ssl/certs", options->certificate,
					   options->key, NULL);
	return status;
}

/* One ID for each start: after a lost connection the server then ends the former one. */
static void choose_client_id(struct connection *connection)
{
	unsigned char random[CLIENT_ID / 2];
	size_t i;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort();
	for (i = 0; i < sizeof(random); i++)
		snprintf(connection->client_id + 2 * i, 3, "%02x", random[i]);
}

/* A new client each time: it has no messages in flight, and reads certificates again. */
static void connect_now(struct connection *connection)
{
	const struct options *options = connection->options;
	struct mosquitto *client;
	int status;

	if (!connection->client_id[0])
		choose_client_id(connection);
	client = mosquitto_new(connection->client_id, true, connection);
	if (!client)
		abort();
	connection->client = client;
	mosquitto_connect_callback_set(client, on_connect);
	mosquitto_subscribe_callback_set(client, on_subscribe);
	mosquitto_publish_callback_set(client, on_publish);
	mosquitto_message_callback_set(client, on_message);
	mosquitto_log_callback_set(client, on_log);
	status = prepare(client, options);
	if (!status)
		status = mosquitto_connect(client, options->server, options->port, KEEPALIVE_S);
	if (status) {
		if (status != MOSQ_ERR_TLS)
			log_once(LOG_SERVER, "cannot connect to %s:%d: %s; trying again", options->server, options->port, reason(status));
		disconnect(connection);
		return;
	}
	connection->connected_ns = boot_ns();
}

static bool is_stuck(const struct connection *connection)
{
	return connection->in_flight && boot_ns() - connection->progress_ns > STUCK_NS;
}

void connection_serve(struct connection *connection)
{
	struct timespec tick = {TICK_MS / 1000, TICK_MS % 1000 * 1000000L};
	int status;

	if (!connection->client && boot_ns() >= connection->next_ns)
		connect_now(connection);
	if (!connection->client) {
		nanosleep(&tick, NULL);
		return;
	}
	status = mosquitto_loop(connection->client, TICK_MS, 1);
	if (status && !connection->refused && status != MOSQ_ERR_TLS)
		log_once(LOG_SERVER, "connection to %s:%d lost: %s; trying again", connection->options->server,
			 connection->options->port, reason(status));
	else if (is_stuck(connection))
		log_once(LOG_SERVER, "%s:%d acknowledges no message; connecting again", connection->options->server,
			 connection->options->port);
	if (status || connection->refused || is_stuck(connection))
		disconnect(connection);
}

bool connection_has_room(const struct connection *connection)
{
	return connection->ready && connection->in_flight < MAX_IN_FLIGHT;
}

static void publish(struct connection *connection, const char *topic, const void *payload, size_t size)
{
	if (mosquitto_publish(connection->client, NULL, topic, (int)size, payload, 1, false) != MOSQ_ERR_SUCCESS)
		return;
	if (!connection->in_flight++)
		connection->progress_ns = boot_ns();
}

void connection_publish(struct connection *connection, const void *payload, size_t size)
{
	const char *machine = connection->options->board.machine;
	char topic[TOPIC];

	snprintf(topic, sizeof(topic), "fe/ring/%c/%s", machine[0], machine);
	publish(connection, topic, payload, size);
}

void connection_reply(struct connection *connection, const void *payload, size_t size)
{
	char topic[TOPIC];

	snprintf(topic, sizeof(topic), "fe/ack/%s", connection->options->board.machine);
	publish(connection, topic, payload, size);
}

void connection_reset_backoff(struct connection *connection)
{
	connection->backoff_ns = NS_PER_S;
}
