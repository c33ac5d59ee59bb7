/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Individual samples, with their order and due times, for a file.
 *
 * Each worker that records samples has one ring: the worker writes, the reporter drains.  A sample that finds the ring
 * full is counted as lost, and the file has the count at the position of the gap.  docs/format.md describes the file.
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
	uint32_t lost_written;
	int series;
	uint64_t written_total, lost_total;
	struct block *block; /* the buffer of a write */
	struct samples *next;
	struct sample ring[SAMPLES_RING];
};

/* As grid_fetch, for the ring. */
static inline void samples_fetch(const struct samples *samples)
{
	__builtin_prefetch(samples, 1);
	__builtin_prefetch(&samples->read);
}

/* By the worker: adds a sample.  This is the whole cost of recording it. */
static inline void samples_add(struct samples *samples, int64_t due_ns, int64_t latency_ns)
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
void samples_open(struct run *run); /* the file, if one is requested; bad input if it cannot be created */
struct samples *samples_new(struct run *run, int series);
int64_t samples_drain_period_ns(const struct run *run); /* short enough that no ring fills up */
void samples_drain(struct run *run);
void samples_close(struct run *run);

#endif
