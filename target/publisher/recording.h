/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording of the board's ring, and how much of it is stored.  It may grow, or be removed for a newer one. */
#ifndef RECORDING_H
#define RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDING_NAME 96
#define RECORDING_RUN 101
#define RECORDING_BOOT 64
#define RECORDING_MAX_LINE (15 << 20)
#define RECORDING_MAX_INTERVALS ((INT64_C(1) << 40) - 1)

/* Position in a file, behind the line of interval `interval` - 1. */
struct position {
	int64_t interval, offset;
};

struct recording {
	char name[RECORDING_NAME];
	char run[RECORDING_RUN], boot[RECORDING_BOOT];
	char *head; /* its first line, with the line feed */
	size_t head_size;
	struct position begin;   /* behind the head */
	struct position counted; /* end of the complete intervals read so far */
	struct position stored;  /* a taker has stored everything before */
	struct position sent;
	bool complete;        /* counted up to the end of the file */
	int64_t bytes;        /* of the file when it was counted */
	bool damaged;         /* the line after `counted` is not the expected interval */
	bool removed;         /* the ring has removed it */
	bool answered;        /* by a taker, since it was last published from `stored` on */
	int64_t due_ns;       /* time of the next retry, from `stored` on; CLOCK_BOOTTIME */
	int64_t retry_ns;     /* 0 until something was published */
	int64_t resend_after_ns; /* a repeated answer causes no retry before this */
	int64_t resend_ns;       /* the next such pause */
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

/* Reads a recording's head; NULL and errno if it cannot be read, EBADMSG if it is invalid. */
struct recording *recording_open(int folder, const char *name);
void recording_free(struct recording *recording);

/* Counts complete intervals added since the last call, within a budget of bytes. */
void recording_count(struct recording *recording, int folder, int64_t *budget);
/* Position before an interval; behind the last one if the file has fewer. */
struct position recording_position(struct recording *recording, int folder, int64_t interval);

/* False if the file cannot be opened. */
bool lines_open(struct lines *lines, int folder, const char *name, int64_t offset);
/* The next complete line, valid until the next call; false if there is none yet. */
bool lines_next(struct lines *lines, struct line *line);
void lines_close(struct lines *lines);

/* Whether a line is of this type. */
bool line_is(const struct line *line, const char *type);
/* Whether a line is that of this interval. */
bool line_is_interval(const struct line *line, int64_t interval);

#endif
