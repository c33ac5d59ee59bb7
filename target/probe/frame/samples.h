/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every sample kept: what a histogram forgets, order and due times, on its way to a file.
 *
 * One ring for each worker that keeps its samples: the worker writes, the reporter drains.  A sample for which there
 * is no room is counted, and the count stands in the file where the sample is missing.  The file's form is in
 * docs/format.md.
 */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdatomic.h>
#include <stdint.h>

#define SAMPLES_RING (1u << 16) /* a third of a second at 5 us, six at 100 us */

struct sample {
	int64_t due_ns, latency_ns;
};

struct block;

struct samples {
	/* the worker's */
	_Alignas(64) _Atomic uint32_t written;
	_Atomic uint32_t lost;
	/* the reporter's */
	_Alignas(64) _Atomic uint32_t read;
	uint32_t lost_told;
	int series;
	uint64_t kept_total, lost_total;
	struct block *block; /* as it is written */
	struct samples *next;
	struct sample ring[SAMPLES_RING];
};

/* As grid_fetch, for the ring. */
static inline void samples_fetch(const struct samples *samples)
{
	__builtin_prefetch(samples, 1);
	__builtin_prefetch(&samples->read);
}

/* The worker's side: whole cost of keeping a sample. */
static inline void samples_keep(struct samples *samples, int64_t due_ns, int64_t latency_ns)
{
	uint32_t written = atomic_load_explicit(&samples->written, memory_order_relaxed);

	if (__builtin_expect(written - atomic_load_explicit(&samples->read, memory_order_acquire) == SAMPLES_RING, 0)) {
		atomic_fetch_add_explicit(&samples->lost, 1, memory_order_relaxed);
		return;
	}
	samples->ring[written % SAMPLES_RING] = (struct sample){due_ns, latency_ns};
	atomic_store_explicit(&samples->written, written + 1, memory_order_release);
}

struct run;

/* samples.c, for the frame */
void samples_open(struct run *run); /* where they are kept; bad input when the file cannot be made */
struct samples *samples_new(struct run *run, int series);
int64_t samples_every_ns(const struct run *run); /* how often to drain: well before a ring is full */
void samples_drain(struct run *run);
void samples_close(struct run *run);

#endif
