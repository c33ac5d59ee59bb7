/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording of the board's ring, which may still grow, or be removed for a newer one; and how far it is stored. */
#ifndef RECORDING_H
#define RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDING_NAME 96
#define RECORDING_RUN 101
#define RECORDING_BOOT 64
#define RECORDING_MOST_LINE (15 << 20)
#define RECORDING_MOST_INTERVALS ((INT64_C(1) << 40) - 1)

/* The place in a file behind the line of interval `interval` - 1. */
struct place {
	int64_t interval, offset;
};

struct recording {
	char name[RECORDING_NAME];
	char run[RECORDING_RUN], boot[RECORDING_BOOT];
	char *head; /* its first line, with the line feed */
	size_t head_size;
	struct place begin;   /* behind the head */
	struct place counted; /* all whole intervals that were seen */
	struct place stored;  /* a taker has stored all before */
	struct place sent;
	bool whole;           /* counted up to the end of the file */
	int64_t bytes;        /* of the file when it was counted */
	bool damaged;         /* what follows `counted` is no interval that belongs there */
	bool gone;            /* the ring has removed it */
	bool answered;        /* by a taker, since it was last published from `stored` on */
	int64_t due_ns;       /* publish again from `stored` on, CLOCK_BOOTTIME */
	int64_t patience_ns;
	int64_t again_ns;     /* not before this because of an answer */
};

/* Lines of an open file from an offset on. */
struct lines {
	int file;
	int64_t offset; /* of the next line */
	char *text;
	size_t begin, size, room;
	bool too_long;
};

struct line {
	const char *text;
	size_t size; /* with the line feed */
};

/* Reads a recording's head; NULL and errno where it cannot be read, EBADMSG where it is none. */
struct recording *recording_open(int folder, const char *name);
void recording_free(struct recording *recording);

/* Counts whole intervals that were added, as far as a budget of bytes reaches. */
void recording_count(struct recording *recording, int folder, int64_t *budget);
/* The place before an interval; the last one that there is where the file has fewer. */
struct place recording_place(struct recording *recording, int folder, int64_t interval);

/* False where the file cannot be opened. */
bool lines_open(struct lines *lines, int folder, const char *name, int64_t offset);
/* The next whole line, valid until the next call; false where there is none (yet). */
bool lines_next(struct lines *lines, struct line *line);
void lines_close(struct lines *lines);

/* Whether a line is of this type. */
bool line_is(const struct line *line, const char *type);
/* Whether a line is that of this interval. */
bool line_is_interval(const struct line *line, int64_t interval);

#endif
