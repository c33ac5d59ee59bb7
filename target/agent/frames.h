/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames over a byte stream: struct frame in little endian, then its content. */
#ifndef FE_AGENT_FRAMES_H
#define FE_AGENT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_VERSION 1
#define FRAME_MAX 131072u
#define PORT_SIZE (sizeof(struct frame) + FRAME_MAX)
#define NONCE_SIZE 16u

enum kind {
	INPUT,   /* bytes for standard input, before START */
	START,   /* u32 limit in ms (0: none), scratch NUL, then each argument NUL */
	SIGNAL,  /* u32 number, to the command itself */
	KILL,    /* kills the command and all its descendants */
	STARTED, /* u32 process id: the root of the command's tree */
	OUTPUT,
	ERRORS,
	EXITED,  /* u32 status, 128 + signal if a signal ended it; the last frame of its id */
	RESET,   /* u32 patience in ms (0: unlimited), nonce; reply: nonce, u32 version, process id, user id */
	PING,    /* reply: the same frame */
	REFUSED, /* text: why the agent closes the connection */
	KINDS,
};

struct frame {
	uint32_t id, kind, length;
};

struct port {
	int in, out;
	bool gone;
	uint32_t patience_ms;
	int64_t received_ms; /* when the last bytes arrived */
	size_t held;
	char *bytes; /* PORT_SIZE, allocated on the first open: a probe locks all static memory */
};

int64_t now_ms(void);
void port_open(struct port *port, int in, int out);
/* How long poll may wait until the bench has been silent for too long; -1: for ever. */
int port_left_ms(const struct port *port);
/* Reads available bytes; at the end of the stream the port is gone. */
void port_fill(struct port *port);
/* The next complete frame; a zero byte follows its content.  An invalid frame is refused. */
bool port_next(struct port *port, struct frame *frame, char content[FRAME_MAX + 1]);
/* Sends a frame; if that fails the frame is dropped and the port is gone. */
void port_send(struct port *port, uint32_t id, enum kind kind, const void *content, uint32_t length);
void port_send_number(struct port *port, uint32_t id, enum kind kind, uint32_t number);
/* Sends the reason and closes the connection. */
void port_refuse(struct port *port, const char *why);
uint32_t number_at(const char *content);

#endif
