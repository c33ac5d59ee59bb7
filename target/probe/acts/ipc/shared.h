/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory shared with a normal process, through which blocks are passed without a lock.
 *
 * The area belongs to the writer until it has stored the number of the block (release), then to the reader until it has
 * stored the same number (release).  The reader copies the block, reads the clock, and only then compares the copy with the
 * expected content.
 */
#ifndef SHARED_H
#define SHARED_H

#include "frame.h"

struct shared;

/*
 * For setup(): creates the area and starts the reading process on its CPU.  That process always ends with this one.
 */
struct shared *shared_new(struct run *run, size_t largest, int reader_cpu, bool same_cpu);

/* Writes the next block to the area and waits until it was read; false when the run ends first. */
bool shared_send(const struct worker *self, struct shared *shared, size_t size, int64_t *begin_ns, int64_t *read_ns);

/* For a watch: fails the run when the process has died or has seen a wrong block. */
void shared_check(struct run *run);
/* Ends the process and waits for it. */
void shared_finish(void);

#endif
