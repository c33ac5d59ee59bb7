/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings one after the other, in a ring, while the acts go on: each begins where the one before ended, to the sample.
 *
 * What cannot be written never ends the measuring.  It is counted, and the next recording reports it.
 */
#ifndef TURN_H
#define TURN_H

#include "ring.h"
#include "run.h"

struct turns {
	struct ring ring;
	int64_t begun_ns; /* the current recording, CLOCK_MONOTONIC */
	uint64_t kept_intervals, kept_values; /* of the current recording: on disk */
	uint64_t lost_intervals, lost_values; /* since this was last told: not on disk */
	int error; /* why nothing can be written now; 0: it can */
};

/* In place of one recording, where a ring is asked for. */
void turns_open(struct run *run);
void turn_begin_file(struct run *run);
void turn_head_written(struct run *run);
/* Writes a line's rest that the disk did not take, after making room; how much, and an errno. */
size_t turn_write_rest(struct run *run, const char *text, size_t size, int *error);
void turn_line_lost(struct run *run, int error);

/* An interval, and the end of the recording where it is due; without a ring an interval. */
void turn_interval(struct run *run);
/* How much longer than without a ring the reporter may be held up, by its disk. */
int64_t turn_patience_ns(const struct run *run);
/* The run is over, and its last recording has its end. */
void turns_close(struct run *run);

#endif
