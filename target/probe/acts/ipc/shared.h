/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory shared with a normal process, and blocks handed over in it without a lock.
 *
 * The area belongs to the writer until it has stored the number of the block (release), then to the
 * reader until it has stored the same number (release).  The reader copies the block out, reads the
 * clock, and only then compares the copy with what the block must be, byte for byte.
 */
#ifndef SHARED_H
#define SHARED_H

#include "frame.h"

struct shared;

/*
 * For setup(): makes the area and starts the reading process on its CPU.  It ends with this process,
 * whatever way that ends.
 */
struct shared *shared_new(struct run *run, size_t largest, int reader_cpu, bool same_cpu);

/* Fills the area with the next block and hands it over; false when the run ends first.  Not timed: waiting. */
bool shared_send(const struct worker *self, struct shared *shared, size_t size, int64_t *begin_ns, int64_t *read_ns);

/* For a watch: fails the run when the process has died or has seen a wrong block. */
void shared_look(struct run *run);
/* Ends the process and waits for it. */
void shared_finish(void);

#endif
