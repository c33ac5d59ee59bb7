/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

uint32_t number_at(const char *content)
{
	uint32_t number;

	memcpy(&number, content, sizeof(number));
	return le32toh(number);
}

void port_open(struct port *port, int in, int out)
{
	port->in = in;
	port->out = out;
	port->gone = false;
	port->patience_ms = 0;
	port->received_ms = now_ms();
	port->held = 0;
	if (!port->bytes)
		port->bytes = malloc(PORT_SIZE);
	if (!port->bytes)
		abort();
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

int port_left_ms(const struct port *port)
{
	int64_t left;

	if (port->patience_ms == 0)
		return -1;
	left = port->received_ms + port->patience_ms - now_ms();
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

void port_fill(struct port *port)
{
	ssize_t got = read(port->in, port->bytes + port->held, PORT_SIZE - port->held);

	if (got > 0) {
		port->held += got;
		port->received_ms = now_ms();
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		port->gone = true;
	}
}

static const char *fault(const struct frame *frame)
{
	if (frame->kind >= KINDS || (frame->kind >= STARTED && frame->kind <= EXITED) || frame->kind == REFUSED)
		return "unknown kind of frame";
	if (frame->length > FRAME_MAX)
		return "frame too long";
	return NULL;
}

bool port_next(struct port *port, struct frame *frame, char content[FRAME_MAX + 1])
{
	size_t whole;

	if (port->gone || port->held < sizeof(*frame))
		return false;
	*frame = (struct frame){ number_at(port->bytes), number_at(port->bytes + 4), number_at(port->bytes + 8) };
	if (fault(frame)) {
		port_refuse(port, fault(frame));
		return false;
	}
	whole = sizeof(*frame) + frame->length;
	if (port->held < whole)
		return false;
	memcpy(content, port->bytes + sizeof(*frame), frame->length);
	content[frame->length] = '\0';
	port->held -= whole;
	memmove(port->bytes, port->bytes + whole, port->held);
	return true;
}

/* Waits until more can be sent, at most as long as the bench may be silent. */
static bool may_send(const struct port *port)
{
	struct pollfd polled = { port->out, POLLOUT, 0 };
	int ready;

	do {
		ready = poll(&polled, 1, port->patience_ms ? (int)port->patience_ms : -1);
	} while (ready < 0 && errno == EINTR);
	return ready > 0 && !(polled.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void send_bytes(struct port *port, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length && !port->gone) {
		ssize_t sent = write(port->out, at, length);

		if (sent > 0) {
			at += sent;
			length -= sent;
		} else if (!(sent < 0 && errno == EINTR) && !(sent < 0 && errno == EAGAIN && may_send(port))) {
			port->gone = true;
		}
	}
}

void port_send(struct port *port, uint32_t id, enum kind kind, const void *content, uint32_t length)
{
	const uint32_t head[] = { htole32(id), htole32(kind), htole32(length) };

	send_bytes(port, head, sizeof(head));
	send_bytes(port, content, length);
}

void port_send_number(struct port *port, uint32_t id, enum kind kind, uint32_t number)
{
	number = htole32(number);
	port_send(port, id, kind, &number, sizeof(number));
}

void port_refuse(struct port *port, const char *why)
{
	port_send(port, 0, REFUSED, why, strlen(why));
	port->gone = true;
}
