/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pipes and named FIFOs of a chosen size. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum channel_kind { CHANNEL_PIPE, CHANNEL_NAMED };
extern const char *const channel_names[];

#define CHANNEL_OPTION(chosen)                                                                                     \
	{"channel", 0, OPTION_CHOICE, chosen, .choices = channel_names, .help = "pipe (default) or named"}

struct channel {
	int read_fd, write_fd;
	int64_t size; /* granted; the kernel rounds up */
};

/* size 0: the kernel's default.  False with the reason if the kernel refuses; nothing stays open then. */
bool channel_open(struct channel *channel, int kind, int64_t size, char *reason, size_t room);
void channel_close(struct channel *channel);

#endif
