/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "paced.h"

static void drop_client(struct bench *bench)
{
	close(bench->client);
	bench->client = -1;
	bench->words_length = 0;
	bench->awaiting = 0;
}

static void tell_board(struct bench *bench, const char *line, size_t length)
{
	ssize_t sent = bench->client < 0 ? 0 : send(bench->client, line, length, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (bench->client < 0 || sent == (ssize_t)length)
		return;
	if (sent >= 0 || errno == EAGAIN)
		fail(bench, "the board does not read what its pins are told");
	drop_client(bench);
}

static void tell_output(struct bench *bench, int level, avr_cycle_count_t when)
{
	char line[PINS_LINE];

	bench->out_ns = now_ns();
	tell_board(bench, line, (size_t)snprintf(line, sizeof(line), "out %d %" PRIu64 " %" PRId64 "\n", level,
						 (uint64_t)when, bench->out_ns));
}

size_t counters(const struct bench *bench, char *line, size_t size)
{
	return (size_t)snprintf(line, size, "edges_out=%lu edges_in=%lu edges_waiting=%u put_back=%lu put_off=%lu "
				"bytes_dropped=%lu most_behind_us=%" PRId64 "\n", bench->out_edges, bench->edges.in,
				bench->edges.count, bench->edges.put_back, bench->edges.put_off, bench->bytes_dropped,
				bench->most_behind_ns / 1000);
}

static void tell_counters(struct bench *bench)
{
	static const char WORD[] = "counted ";
	char line[COUNTED];

	strcpy(line, WORD);
	tell_board(bench, line, strlen(WORD) + counters(bench, line + strlen(WORD), sizeof(line) - strlen(WORD)));
}

void on_output(void *context, int level, avr_cycle_count_t when)
{
	struct bench *bench = context;

	bench->out_edges++;
	bench->out_cycle = when;
	bench->awaiting = bench->client >= 0;
	tell_output(bench, level, when);
}

static void edge(struct bench *bench, int level, int64_t at_ns)
{
	avr_cycle_count_t at = bench->awaiting ? bench->out_cycle + cycles_in(at_ns - bench->out_ns)
					       : edges_apart(&bench->edges, cycles_in(at_ns - bench->start_ns));

	bench->awaiting = 0;
	if (edges_put(&bench->edges, level, at))
		fail(bench, "edges come faster than this machine can simulate the gauge: there is no room for more of them");
}

static void word(struct bench *bench, const char *line)
{
	int level;
	int64_t at_ns = 0;

	if (!strcmp(line, "count")) {
		tell_counters(bench);
	} else if (sscanf(line, "in %d %" SCNd64, &level, &at_ns) < 1 || (level & ~1)) {
		fprintf(stderr, "pins: '%.40s' is not 'in LEVEL [NS]'\n", line);
		drop_client(bench);
	} else {
		edge(bench, level, at_ns ? at_ns : now_ns());
	}
}

void hear_pins(struct bench *bench)
{
	ssize_t length = recv(bench->client, bench->words + bench->words_length,
			      sizeof(bench->words) - 1 - bench->words_length, MSG_DONTWAIT);
	char *line = bench->words, *end;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0) {
		drop_client(bench);
		return;
	}
	bench->words_length += (size_t)length;
	bench->words[bench->words_length] = 0;
	for (; bench->client >= 0 && (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		word(bench, line);
	}
	if (bench->client < 0)
		return;
	bench->words_length = strlen(line);
	memmove(bench->words, line, bench->words_length + 1);
	if (bench->words_length >= PINS_LINE)
		drop_client(bench);
}

void welcome_board(struct bench *bench)
{
	int client = accept4(bench->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client < 0)
		return;
	if (bench->client >= 0)
		drop_client(bench);
	bench->client = client;
	tell_output(bench, bench->machine.timer.output, bench->machine.avr->cycle);
}

int open_pins(struct bench *bench)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(bench->socket_path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, bench->socket_path);
	bench->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bench->listener < 0 || bind(bench->listener, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return listen(bench->listener, 1);
}
