/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine for the core on the host.  Its time passes only by a test, or by a stimulus. */
#ifndef GAUGE_HOST_MACHINE_H
#define GAUGE_HOST_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_machine {
	uint64_t ticks;
	bool input, output;
	bool responds; /* the board follows each stimulus after `delay` ticks */
	uint32_t delay;
	bool send_full;
	uint32_t stimuli, drives;
	const char *input_text;
	size_t output_text_length;
	char output_text[1 << 20];
};

extern struct host_machine host;

void host_begin(void);

/* Sends a line; returns all that the core sent back. */
const char *host_command(const char *line);

#endif
