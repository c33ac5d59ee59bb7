/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A folder of consecutive recordings with a maximum size: the oldest are deleted for the newest.
 *
 * Each is a file of its own, SERIAL-RUN.jsonl, and an ordinary recording; serials ascend.  It is begun as
 * SERIAL-RUN.jsonl.new and gets its name when its head is on disk.  There is no index: the files in the folder are the ring.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>

#define RING_NAME 96

struct ring_file {
	char name[RING_NAME];
	int64_t bytes;    /* on disk */
	int64_t since_ns; /* when it ended, or was found; CLOCK_BOOTTIME, which cannot be set */
};

/* The last recording of the previous writer. */
struct ring_before {
	char name[RING_NAME]; /* empty: there was none */
	bool ended;           /* it has an end line; else it was interrupted */
	int64_t written_ns;   /* when it was last written to, CLOCK_REALTIME */
};

struct ring {
	int folder;
	int64_t retention_ns, max_bytes;
	uint64_t serial;         /* of the file named last */
	char name[RING_NAME];    /* of the current file; empty: none */
	struct ring_file *ended; /* oldest first */
	int count, room;
	int64_t finished_bytes;
	struct ring_before before;
	uint64_t dropped; /* files deleted before their retention time, since last reported */
};

/* Creates the folder if it is missing, and locks it; bad input if it belongs to another user or another probe writes to it.
 * Removes an incomplete last line of the newest file. */
void ring_open(struct ring *ring, const char *path, int64_t retention_ns, int64_t max_bytes);

/* A file for the next recording; -1 and errno. */
int ring_begin(struct ring *ring, const char *run);
/* Gives the file its name, after its head is written; returns an errno. */
int ring_name(struct ring *ring, int file);
/* Deletes and closes the current file. */
void ring_discard(struct ring *ring, int file);
/* Finishes and closes the current file. */
void ring_end(struct ring *ring, int file);

/* Deletes the oldest finished recording; false if there is none, or if that cannot remedy this errno. */
bool ring_make_room(struct ring *ring, int error);
/* Deletes recordings beyond the retention time, then the oldest until the maximum size is met. */
void ring_trim(struct ring *ring, int64_t current_bytes);

#endif
