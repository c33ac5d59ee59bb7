/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A folder of recordings, one after the other, that never fills its disk: the oldest make room for the newest.
 *
 * Each is a file of its own, SERIAL-RUN.jsonl, and an ordinary recording; serials ascend.  It is begun as
 * SERIAL-RUN.jsonl.new and gets its name when its head is on disk.  There is no index: what lies in the folder is the ring.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>

#define RING_NAME 96

struct ring_file {
	char name[RING_NAME];
	int64_t bytes;    /* that it takes on disk */
	int64_t since_ns; /* when it ended, or was found: CLOCK_BOOTTIME, which nobody sets */
};

/* What the last recording of whoever wrote here before came to. */
struct ring_before {
	char name[RING_NAME]; /* empty: there was none */
	bool ended;           /* in order; else it was cut off */
	int64_t written_ns;   /* when it was last written to, CLOCK_REALTIME */
};

struct ring {
	int folder;
	int64_t keep_ns, most_bytes;
	uint64_t serial;         /* of the file named last */
	char name[RING_NAME];    /* of the current file; empty: none */
	struct ring_file *ended; /* oldest first */
	int count, room;
	int64_t ended_bytes;
	struct ring_before before;
	uint64_t dropped; /* files that made room before their time, since this was last told */
};

/* Makes the folder where it is missing, and takes hold of it; bad input where it is another's or somebody writes there
 * already.  Of the last file a torn line is cut away. */
void ring_open(struct ring *ring, const char *path, int64_t keep_ns, int64_t most_bytes);

/* A file for the next recording; -1 and errno. */
int ring_begin(struct ring *ring, const char *run);
/* Its head is written: from now on it can be found.  An errno. */
int ring_name(struct ring *ring, int file);
/* Nothing of it can be kept; removes and closes it. */
void ring_give_up(struct ring *ring, int file);
/* No more will be written to it; closes it. */
void ring_end(struct ring *ring, int file);

/* Drops the oldest recording that has ended; false where there is none, or where that does not help against this errno. */
bool ring_make_room(struct ring *ring, int error);
/* Drops those that are old enough, and so many that the rest takes no more than it may. */
void ring_trim(struct ring *ring, int64_t current_bytes);

#endif
