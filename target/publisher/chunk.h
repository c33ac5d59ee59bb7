/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A published message: a preface, a recording's head and consecutive intervals, compressed with zstd.  See
 * docs/fleet-boards.md. */
#ifndef CHUNK_H
#define CHUNK_H

#include "recording.h"

#define CHUNK_MACHINE 33
#define CHUNK_TYPE 65

/* Identity of the board: 32 hexadecimal digits; letters, digits, dots, hyphens and underscores. */
struct board {
	char machine[CHUNK_MACHINE];
	char type[CHUNK_TYPE];
};

struct chunk {
	char *payload;
	size_t size;
	struct position after; /* end of the published part, including this chunk */
};

/*
 * The next chunk after `sent`: as many whole intervals as fit.  An interval too long for a chunk, and the rest of a recording
 * that the ring has removed, is reported as lost by a chunk without intervals whose `oldest` lies behind it.
 */
struct chunk chunk_make(const struct board *board, const struct recording *recording, int folder);
void chunk_free(struct chunk *chunk);

#endif
