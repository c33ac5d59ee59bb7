/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames over a stream of bytes: struct frame in little endian, then its content. */
#ifndef FE_AGENT_FRAMES_H
#define FE_AGENT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_VERSION 1
#define FRAME_MOST 131072u
#define PORT_SIZE (sizeof(struct frame) + FRAME_MOST)
#define NONCE_SIZE 16u

enum kind {
	INPUT,   /* bytes for standard input, before START */
	START,   /* u32 limit in ms (0: none), scratch NUL, then each argument NUL */
	SIGNAL,  /* u32 number, to the command itself */
	KILL,    /* everything the command has started, too */
	STARTED, /* u32 process id: the root of the command's tree */
	OUTPUT,
	ERRORS,
	EXITED,  /* u32 status, 128 + signal where one ended it; the last frame of its id */
	RESET,   /* u32 patience in ms (0: without end), nonce; said back with nonce, u32 version, process id, user id */
	PING,    /* said back as it is */
	REFUSED, /* text: why the agent hangs up */
	KINDS,
};

struct frame {
	uint32_t id, kind, length;
};

struct port {
	int in, out;
	bool gone;
	uint32_t patience_ms;
	int64_t heard_ms; /* when bytes came last */
	size_t held;
	char *bytes; /* PORT_SIZE of them, allocated when it is first opened: a probe locks all that is static */
};

int64_t now_ms(void);
void port_open(struct port *port, int in, int out);
/* How long poll may wait before the bench has said nothing for too long; -1: for ever. */
int port_left_ms(const struct port *port);
/* Takes what has come; the port is gone at its end. */
void port_fill(struct port *port);
/* The next whole frame; its content has room for one more byte, which is 0.  A bad frame is refused. */
bool port_next(struct port *port, struct frame *frame, char content[FRAME_MOST + 1]);
/* What cannot be sent is dropped, and the port is gone then. */
void port_send(struct port *port, uint32_t id, enum kind kind, const void *content, uint32_t length);
void port_send_number(struct port *port, uint32_t id, enum kind kind, uint32_t number);
/* Says why and hangs up. */
void port_refuse(struct port *port, const char *why);
uint32_t number_at(const char *content);

#endif
