/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine for the core on the host: time passes only when a test says so or a stimulus is due. */
#ifndef GAUGE_HOST_MACHINE_H
#define GAUGE_HOST_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_machine {
	uint64_t ticks;
	bool input, output;
	bool answers; /* the board follows each stimulus after `delay` ticks */
	uint32_t delay;
	bool no_room;
	uint32_t stimuli, drives;
	const char *typed;
	size_t said_length;
	char said[1 << 20];
};

extern struct host_machine host;

void host_begin(void);

/* Types a line; returns all that was said to it. */
const char *host_ask(const char *line);

#endif
