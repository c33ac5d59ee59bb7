/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A series: the histogram one worker fills and the reporter reads without stopping it.
 *
 * There are two epochs, each a whole histogram.  The worker adds to the current one; the reporter
 * makes the other one current, waits until no add is under way in the old one, reads and empties it.
 * No sample is ever lost or counted twice.  A series has exactly one writer.
 */
#ifndef SERIES_H
#define SERIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fe_hist.h"

#define SERIES_K 10
#define SERIES_HALF ((int32_t)FE_HIST_BUCKETS(63, SERIES_K))
#define SERIES_BUCKETS (2 * SERIES_HALF - 1) /* the mirrored half shares bucket 0 */
/* The magnitudes of all values of a run together: so neither the sum, nor its part in an interval, nor the sum of
 * squares ever overflows.  A century of latency, or one step of a wall clock that began in 1970. */
#define SERIES_SUM_MOST ((uint64_t)1 << 62)
/* Scale of the rise counts.  A histogram does not hold the order of its values; the rise counts hold a part of it. */
#define SERIES_RISE_K 3
#define SERIES_EDGES (FE_HIST_BUCKETS(63, SERIES_RISE_K) + 1) /* from 1 on */
#define EVENTS 64
#define MAX_LABELS 4

/* Use of the values: judged by a limit, displayed only, or converted to a throughput. */
enum series_role { SERIES_VERDICT, SERIES_DIAGNOSTIC, SERIES_THROUGHPUT };

struct series_label {
	const char *name, *value;
};

/* Description of a series by its probe.  Texts must outlive the run. */
struct series_spec {
	const char *name;
	const char *from, *to;   /* the two events each value lies between */
	const char *clock;       /* as in the head, "monotonic" where left out */
	bool any_cpu;            /* the act belongs to no single CPU; cpu is ignored */
	int cpu;
	int64_t period_ns;       /* periodic acts only, else 0 */
	unsigned k;              /* buckets per octave are 2^k, 0: SERIES_K; only a source may count in wider ones */
	int64_t bytes;           /* moved per sample, where throughput is meant, else 0 */
	const char *refused;     /* why the kernel refused this parameter; the series stays empty */
	enum series_role role;
	bool two_sided;          /* early and late values both count: a limit bounds the magnitude */
	bool corrected;          /* each missed activation adds a value, its delay */
	bool relative;           /* each due time counts from the last act */
	bool silent;             /* records no maximum events: another series has them already */
	struct series_label labels[MAX_LABELS];
};

/* A new maximum or a value over the threshold, to be recorded by the reporter. */
struct event {
	int64_t mono_ns, value;
	bool maximum, over_threshold;
	const char *culprit; /* JSON; NULL: not known */
};

/* Values above the limit, and runs of consecutive such values. */
struct exceedances {
	uint64_t exceeded, runs, longest;
	uint64_t sum_sq_lo, sum_sq_hi; /* of the lengths of the runs */
};

struct epoch {
	uint32_t *buckets; /* points at bucket 0; -(SERIES_HALF - 1) .. SERIES_HALF - 1 are valid */
	struct fe_stats stats;
	uint64_t lost, missed;
	uint64_t gaps; /* places where lost values leave the order unknown */
	uint64_t sum_most; /* upper bound of the magnitudes; 0 until the writer first uses this epoch */
	uint32_t recording; /* which one it belongs to */
	uint32_t events;   /* that the writer added to the ring during this epoch */
	/* Where a value's coarse bucket is above that of the value before it, one more run begins in each bucket
	 * between: +1 at the first of them, -1 behind the last.  Sums over the edges from 1 on are numbers of runs. */
	int64_t rises[SERIES_EDGES + 1];
	struct exceedances over;
	struct event dropped_max; /* the latest maximum for which the ring had no room; none if .maximum is false */
};

struct series {
	/* the writer's */
	_Atomic uint32_t busy; /* odd while an add is under way */
	_Atomic uint32_t current;
	int64_t watch_ns; /* values above are events */
	uint64_t magnitudes; /* of all values so far, added */
	uint32_t before;     /* coarse bucket of the last value; outlasts epochs, as does: */
	uint64_t run_length; /* of values above the limit, up to the last one */
	bool after_charges; /* charges were added or lost since the last value */
	uint32_t recording;  /* that the last value belongs to */
	uint64_t one_sided;  /* all bits where a value below 0 exceeds nothing, none where its magnitude counts */
	uint64_t limit_ns;   /* --limit; UINT64_MAX: none */
	struct epoch epochs[2];
	struct series *charged; /* holds the charges that belong to the values here; NULL: none; see series_share() */
	struct series *values;  /* holds the values that belong to the charges here; NULL: here */
	int64_t highest_ns;
	int64_t threshold_ns; /* that values exceed now; INT64_MAX: none */
	int64_t next_threshold_ns;     /* the same, from the next recording on */
	_Atomic bool *stop_at_threshold; /* set when a value exceeds it; NULL: the value is only recorded */
	int trace_fd; /* switch of a kernel trace, written just before that; -1: none */
	_Atomic uint32_t events_written, events_read;
	_Atomic uint32_t events_dropped; /* a maximum over the threshold counts twice */
	struct event events[EVENTS];
	/* the reporter's */
	uint32_t busy_at_flip;
	uint32_t recordings; /* begun before the current one */
	uint32_t dropped_before; /* events, during a warm-up */
	int id;
	struct series_spec spec;
	uint64_t *totals; /* like epoch.buckets; of charges alone where values is set; NULL until something is stored */
	struct fe_stats total;
	uint64_t total_lost, total_missed, total_gaps;
	int64_t total_rises[SERIES_EDGES + 1];
	struct exceedances total_over;
	struct event deferred_max;  /* the latest maximum beyond the recording's limit of events; owns its culprit */
	int64_t recorded_max_ns;       /* the greatest maximum recorded */
	int highest_cpu;       /* where it was measured, of an act that belongs to no single CPU; -1: not known */
	size_t text_begin, text_end; /* where the line of the interval has its buckets */
};

struct series *series_new(int id, const struct series_spec *spec, int64_t threshold_ns);
/*
 * Locks and pre-faults the memory that an ordinary sample touches; returns an errno.  Buckets beyond (later than 8 s,
 * earlier than 16 us or, of a two-sided series, 16 ms) are allocated by the first such sample: its page fault is
 * negligible compared with the sample.
 */
int series_lock(struct series *series);
/* Pre-faults the buckets and totals of these samples, so that a measurement of months uses the same memory at its end as
 * at its begin; false if there is no memory. */
bool series_prefault(struct series *series);
/* Allocates the totals; done with the first sample unless pre-faulted before.  False if there is no memory. */
bool series_map_totals(struct series *series);
void series_free(struct series *series);
/*
 * Each value of one series is a value of a second one, too, which holds only its charges: an act stores its value once.
 * Both have the same limit, and the first one's epochs; it counts lost values and missed periods for both.  The next value
 * behind charges rises from another one in each series: the second one's epoch holds the difference.
 */
void series_share(struct series *charged, struct series *values);
/* Until the next recording begins nothing is over the threshold. */
void series_warm_up(struct series *series);
/* Zeroed, for the length of the run, taking memory only where it is touched; NULL. */
void *series_memory(size_t size);

/* By the writer, within an add: adds an event to the ring.  The ring is bounded, but the latest maximum is always stored. */
void series_event(struct series *series, struct epoch *epoch, int64_t value);

static inline int32_t series_bucket(int64_t value)
{
	int32_t index = (int32_t)fe_hist_index(fe_magnitude(value), SERIES_K);

	return value < 0 ? -index : index;
}

/* The same for what others counted, in buckets of the series' own width. */
int32_t series_index(const struct series *series, int64_t value);
/* The wider bucket, of resolution k, that a bucket lies in. */
int32_t series_folded(const struct series *series, int32_t index, unsigned k);

static inline struct epoch *series_enter(struct series *series)
{
	uint32_t busy = atomic_load_explicit(&series->busy, memory_order_relaxed);

	/* Sequentially consistent, as the reporter's store of current and load of busy are: one of
	 * the two sides always sees the other. */
	atomic_store(&series->busy, busy + 1);
	return &series->epochs[atomic_load(&series->current)];
}

static inline void series_leave(struct series *series)
{
	uint32_t busy = atomic_load_explicit(&series->busy, memory_order_relaxed);

	atomic_store_explicit(&series->busy, busy + 1, memory_order_release);
}

/* Size of a value as compared by rises and limits. */
static inline uint64_t series_size(const struct series *series, int64_t value)
{
	return fe_magnitude(value) & ~((uint64_t)(value >> 63) & series->one_sided);
}

/* As series_store(), for the first value behind charges. */
void series_store_after_charges(struct series *series, struct epoch *epoch, int64_t value);
/* Counts consecutive values above the limit. */
void series_exceed(struct series *series, struct epoch *epoch, uint64_t count);
/* A value was lost: rises and runs restart behind it. */
void series_gap(struct series *series, struct epoch *epoch);
/* By the writer, before it adds to an epoch otherwise than by series_store(): discards the state of an earlier recording if
 * the epoch belongs to another one.  The reporter prepared the epoch while it had no writer. */
void series_sync_recording(struct series *series, struct epoch *epoch);
/* The fast path of series_store() refused this value: it is the first of this epoch, or it is lost. */
void series_no_room(struct series *series, struct epoch *epoch, int64_t value);

static inline void series_follow(struct series *series, struct epoch *epoch, uint64_t size)
{
	uint32_t bucket = fe_hist_index(size, SERIES_RISE_K);

	if (bucket > series->before) {
		epoch->rises[series->before + 1]++;
		epoch->rises[bucket + 1]--;
	}
	series->before = bucket;
	if (__builtin_expect(size > series->limit_ns, 0))
		series_exceed(series, epoch, 1);
	else
		series->run_length = 0;
}

static inline void series_store(struct series *series, struct epoch *epoch, int64_t value)
{
	uint32_t *bucket = &epoch->buckets[series_bucket(value)];
	uint64_t magnitudes = series->magnitudes + fe_magnitude(value);

	if (__builtin_expect(*bucket == UINT32_MAX || magnitudes > epoch->sum_most, 0)) {
		series_no_room(series, epoch, value);
		return;
	}
	series->magnitudes = magnitudes;
	++*bucket;
	fe_stats_add(&epoch->stats, value);
	series_follow(series, epoch, series_size(series, value));
}

/* After a long sleep nothing of a series is in the cache: fetch all that an add touches at once, not one after the other. */
static inline void series_fetch(const struct series *series)
{
	__builtin_prefetch(series, 1);
	for (int i = 0; i < 2; i++)
		__builtin_prefetch(&series->epochs[i].stats, 1);
}

/* Store one value: the whole cost of recording a sample. */
static inline void series_add(struct series *series, int64_t value)
{
	struct epoch *epoch = series_enter(series);

	if (__builtin_expect(series->after_charges, 0))
		series_store_after_charges(series, epoch, value);
	else
		series_store(series, epoch, value);
	if (__builtin_expect(value > series->watch_ns, 0))
		series_event(series, epoch, value);
	series_leave(series);
}

/* Count values that were taken but could not be stored, and acts that never took place. */
void series_add_lost(struct series *series, uint64_t count);
void series_add_missed(struct series *series, uint64_t count);

struct fe_charges;

/* Adds the delays of the periods that an act missed, all shorter than its own delay: for one-sided series, without
 * events.  The cost grows with the buckets that it fills, not with the charges. */
void series_add_charges(struct series *series, const struct fe_charges *charges);

/*
 * The reporter's side.  Flipping makes the other epoch current and takes no time, so that one instant parts what all
 * series hold.  The old epoch may be read once no add is under way in it; NULL if the writer is stuck within one.
 */
void series_flip(struct series *series);
struct epoch *series_flipped(struct series *series);
/* Adds the values of an epoch to that of the series that holds only their charges, where there is one: before the epoch is
 * settled, and before the other one is read.  Where nothing was charged, its buckets stay empty: they are those of the values. */
void series_complete(struct series *series, const struct epoch *epoch);
/* Whether an epoch of that series, once completed, has nothing but these values. */
bool series_repeats(const struct series *series, const struct epoch *epoch);
/* Add what was read to the totals and empty it for its next use. */
void series_accumulate(struct series *series, struct epoch *epoch);
/*
 * Another recording begins with the next flip: what the writer remembers of the values before it (their order, the
 * greatest, their sum) ends there.  The totals are the reporter's to begin anew, when the recording before has ended.
 */
void series_begin_with_flip(struct series *series);
void series_reset_totals(struct series *series);
/* How many values of the recording lie in a bucket. */
uint64_t series_stored(const struct series *series, int32_t index);
/* The first bucket from index on that holds something, or beyond the last. */
int32_t epoch_next_filled(const struct epoch *epoch, int32_t index, int32_t last);
bool series_next_event(struct series *series, struct event *event);

/*
 * Quantiles of the totals, in one pass: shares ascend, each above 0 and at most 1.  Each value is the
 * upper edge of its bucket, never above the exact maximum; 0 where nothing is stored.
 */
void series_quantiles(const struct series *series, const double *shares, int64_t *values, int count);

#endif
