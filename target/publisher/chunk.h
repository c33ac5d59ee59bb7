/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is published, see docs/fleet-boards.md: zstd over a preface, a recording's head, and consecutive intervals. */
#ifndef CHUNK_H
#define CHUNK_H

#include "recording.h"

#define CHUNK_MACHINE 33
#define CHUNK_TYPE 65

/* Who publishes: 32 hexadecimal digits, and letters, digits, dots, hyphens and underscores. */
struct board {
	char machine[CHUNK_MACHINE];
	char type[CHUNK_TYPE];
};

struct chunk {
	char *payload;
	size_t size;
	struct place after; /* how far the recording is published with it */
};

/*
 * Of what follows `sent`: whole intervals, as many as fit.  An interval that fits into no chunk, and all of a recording
 * that the ring has removed, is reported as lost: a chunk without intervals, whose `oldest` is behind it.
 */
struct chunk chunk_make(const struct board *board, const struct recording *recording, int folder);
void chunk_free(struct chunk *chunk);

#endif
