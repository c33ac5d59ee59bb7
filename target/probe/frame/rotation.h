/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rotation of recordings in a ring without a pause of the acts: each recording begins with the sample that follows the last
 * one of the previous recording.
 *
 * A write error never ends the measurement.  The lost data is counted, and the next recording reports it.
 */
#ifndef ROTATION_H
#define ROTATION_H

#include "ring.h"
#include "run.h"

struct rotation {
	struct ring ring;
	int64_t begun_ns; /* the current recording, CLOCK_MONOTONIC */
	uint64_t stored_intervals, stored_values; /* of the current recording, on disk */
	uint64_t lost_intervals, lost_values; /* not written, since last reported */
	int error; /* errno of the current write failure; 0: none */
};

/* Opens the ring of --ring. */
void rotation_open(struct run *run);
void rotation_begin_file(struct run *run);
void rotation_head_written(struct run *run);
/* Makes room on the disk and writes the rest of a line; returns the bytes written, and an errno. */
size_t rotation_write_rest(struct run *run, const char *text, size_t size, int *error);
void rotation_line_lost(struct run *run, int error);

/* Records an interval; in a ring, also starts the next recording if it is due. */
void rotation_interval(struct run *run);
/* Additional time that the reporter may be blocked by the disk of a ring. */
int64_t rotation_write_limit_ns(const struct run *run);
/* Closes the last recording, whose end line is written. */
void rotation_close(struct run *run);

#endif
