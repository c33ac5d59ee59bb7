/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "periodic.h"

/* How long an add may be seen under way before its writer counts as stuck. */
#define STUCK_LOOK_NS 50000
#define STUCK_LOOKS (2 * NS_PER_S / STUCK_LOOK_NS)
/* Magnitudes whose buckets are locked: 2^33 ns late; 2^24 ns early, where that is as usual, else 2^14 ns. */
#define LATE_BITS 33
#define EARLY_BITS 24
#define SELDOM_EARLY_BITS 14
#define PAGE_LEAST 4096

void *series_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static uint32_t *map_buckets(void)
{
	uint32_t *first = series_memory(SERIES_BUCKETS * sizeof(uint32_t));

	return first ? first + SERIES_HALF - 1 : NULL;
}

struct series *series_new(int id, const struct series_spec *spec, int64_t threshold_ns)
{
	struct series *series = series_memory(sizeof(*series));

	if (!series)
		return NULL;
	series->id = id;
	series->spec = *spec;
	series->spec.k = spec->k ? spec->k : SERIES_K;
	series->highest_ns = series->recorded_max_ns = INT64_MIN;
	series->highest_cpu = series->trace_fd = -1;
	series->watch_ns = spec->silent ? INT64_MAX : INT64_MIN;
	series->one_sided = spec->two_sided ? 0 : UINT64_MAX;
	series->limit_ns = UINT64_MAX;
	series->threshold_ns = series->next_threshold_ns = threshold_ns ? threshold_ns : INT64_MAX;
	for (int i = 0; i < 2; i++) {
		series->epochs[i].buckets = map_buckets();
		if (!series->epochs[i].buckets)
			return NULL;
		series->epochs[i].sum_most = SERIES_SUM_MOST;
	}
	return series;
}

int series_lock(struct series *series)
{
	const int32_t latest = (int32_t)FE_HIST_BUCKETS(LATE_BITS, SERIES_K);
	const unsigned early_bits = series->spec.two_sided ? EARLY_BITS : SELDOM_EARLY_BITS;
	const int32_t earliest = (int32_t)FE_HIST_BUCKETS(early_bits, SERIES_K);

	if (mlock(series, sizeof(*series)))
		return errno;
	for (int i = 0; i < 2; i++)
		if (mlock(series->epochs[i].buckets - earliest, (size_t)(earliest + latest) * sizeof(uint32_t)))
			return errno;
	return 0;
}

static void touch(void *memory, size_t size)
{
	volatile char *bytes = memory;

	for (size_t at = 0; at < size; at += PAGE_LEAST)
		bytes[at] = bytes[at];
}

bool series_prefault(struct series *series)
{
	const int32_t latest = (int32_t)FE_HIST_BUCKETS(LATE_BITS, series->spec.k);
	const int32_t earliest = series->spec.two_sided ? (int32_t)FE_HIST_BUCKETS(EARLY_BITS, series->spec.k) : 0;

	if (!series_map_totals(series))
		return false;
	touch(series, sizeof(*series));
	touch(series->totals - earliest, (size_t)(earliest + latest) * sizeof(*series->totals));
	for (int i = 0; i < 2; i++)
		touch(series->epochs[i].buckets - earliest, (size_t)(earliest + latest) * sizeof(uint32_t));
	return true;
}

void series_warm_up(struct series *series)
{
	series->threshold_ns = INT64_MAX;
}

int32_t series_folded(const struct series *series, int32_t index, unsigned k)
{
	int32_t wide;

	if (k == series->spec.k)
		return index;
	wide = (int32_t)fe_hist_index(fe_hist_lower((fe_u32)abs(index), series->spec.k), k);
	return index < 0 ? -wide : wide;
}

int32_t series_index(const struct series *series, int64_t value)
{
	int32_t index = (int32_t)fe_hist_index(fe_magnitude(value), series->spec.k);

	return value < 0 ? -index : index;
}

void series_free(struct series *series)
{
	for (int i = 0; i < 2; i++)
		munmap(series->epochs[i].buckets - (SERIES_HALF - 1), SERIES_BUCKETS * sizeof(uint32_t));
	if (series->totals)
		munmap(series->totals - (SERIES_HALF - 1), SERIES_BUCKETS * sizeof(uint64_t));
	munmap(series, sizeof(*series));
}

/* The reporter takes it with the epoch; of several only the last is a maximum still. */
static void keep_crowded(struct series *series, struct epoch *epoch, struct event event)
{
	struct event dropped = event.maximum ? epoch->dropped_max : event;

	if (event.maximum)
		epoch->dropped_max = event;
	atomic_fetch_add_explicit(&series->events_dropped, (uint32_t)dropped.maximum + dropped.over_threshold,
				  memory_order_relaxed);
}

/* By the worker, not by the reporter: until that runs, the trace of the cause would be overwritten.  Whether the trace
 * is off is checked by its reader. */
static void stop(struct series *series)
{
	if (series->trace_fd >= 0 && write(series->trace_fd, "0", 1) != 1)
		series->trace_fd = -1;
	atomic_store(series->stop_at_threshold, true);
}

void series_event(struct series *series, struct epoch *epoch, int64_t value)
{
	struct event event = {.mono_ns = mono_ns(), .value = value};
	uint32_t written = atomic_load_explicit(&series->events_written, memory_order_relaxed);

	event.maximum = value > series->highest_ns;
	event.over_threshold = value > series->threshold_ns;
	if (event.over_threshold && series->stop_at_threshold)
		stop(series);
	if (event.maximum)
		series->highest_ns = value;
	series->watch_ns = series->highest_ns < series->threshold_ns ? series->highest_ns : series->threshold_ns;
	if (written - atomic_load_explicit(&series->events_read, memory_order_acquire) == EVENTS) {
		keep_crowded(series, epoch, event);
		return;
	}
	series->events[written % EVENTS] = event;
	epoch->events++;
	atomic_store_explicit(&series->events_written, written + 1, memory_order_release);
}

bool series_next_event(struct series *series, struct event *event)
{
	uint32_t read = atomic_load_explicit(&series->events_read, memory_order_relaxed);

	if (read == atomic_load_explicit(&series->events_written, memory_order_acquire))
		return false;
	*event = series->events[read % EVENTS];
	atomic_store_explicit(&series->events_read, read + 1, memory_order_release);
	return true;
}

void series_share(struct series *charged, struct series *values)
{
	charged->values = values;
	values->charged = charged;
}

/* The series that holds the values of this one, and whose epochs it has. */
static struct series *values_of(struct series *series)
{
	return series->values ? series->values : series;
}

/* The same epoch of the series that holds the charges. */
static struct epoch *charged_epoch(const struct series *series, const struct epoch *epoch)
{
	return &series->charged->epochs[epoch - series->epochs];
}

/* Charges follow on the last value, or on a gap or the begin of a recording, where the writer remembers no value. */
static void part(struct series *series)
{
	if (series->after_charges)
		return;
	series->charged->before = series->before;
	if (!series->run_length)
		series->charged->run_length = 0;
	series->after_charges = true;
}

static void add_rise(struct epoch *epoch, uint32_t before, uint32_t bucket, int64_t times)
{
	if (bucket <= before)
		return;
	epoch->rises[before + 1] += times;
	epoch->rises[bucket + 1] -= times;
}

/* A rise from the last charge takes the place of that from the last value. */
void series_store_after_charges(struct series *series, struct epoch *epoch, int64_t value)
{
	struct epoch *charged = charged_epoch(series, epoch);
	uint64_t lost = epoch->lost;
	uint32_t before;

	series_sync_recording(series, epoch);
	part(series);
	before = series->before;
	series_store(series, epoch, value);
	if (epoch->lost != lost)
		return;
	add_rise(charged, before, series->before, -1);
	add_rise(charged, series->charged->before, series->before, 1);
	series->after_charges = false;
}

static void exceed(struct series *series, struct epoch *epoch, uint64_t count)
{
	struct exceedances *over = &epoch->over;

	over->exceeded += count;
	over->runs += series->run_length == 0;
	/* (length + count)^2 - length^2 */
	fe_add_product(&over->sum_sq_lo, &over->sum_sq_hi, count, 2 * series->run_length + count);
	series->run_length += count;
	if (series->run_length > over->longest)
		over->longest = series->run_length;
}

void series_exceed(struct series *series, struct epoch *epoch, uint64_t count)
{
	/* Where no charge came since, the last value ended the run of both: charges are shorter than the delay of their act. */
	if (series->charged && !series->after_charges && !series->run_length)
		series->charged->run_length = 0;
	if (series->charged)
		exceed(series->charged, charged_epoch(series, epoch), count);
	exceed(series, epoch, count);
}

void series_gap(struct series *series, struct epoch *epoch)
{
	epoch->gaps++;
	series->before = 0;
	series->run_length = 0;
	series->after_charges = false;
}

void series_sync_recording(struct series *series, struct epoch *epoch)
{
	if (epoch->sum_most)
		return;
	epoch->sum_most = SERIES_SUM_MOST;
	if (epoch->recording == series->recording)
		return;
	series->recording = epoch->recording;
	series->magnitudes = series->run_length = series->before = 0;
	series->after_charges = false;
	series->highest_ns = INT64_MIN;
	series->threshold_ns = series->next_threshold_ns;
	series->watch_ns = series->spec.silent ? INT64_MAX : INT64_MIN;
}

void series_no_room(struct series *series, struct epoch *epoch, int64_t value)
{
	if (!epoch->sum_most) {
		series_sync_recording(series, epoch);
		series_store(series, epoch, value);
		return;
	}
	epoch->lost++;
	series_gap(series, epoch);
}

static void lose(struct series *series, struct epoch *epoch, uint64_t count)
{
	epoch->lost += count;
	series_gap(series, epoch);
}

void series_add_lost(struct series *series, uint64_t count)
{
	lose(series, series_enter(series), count);
	series_leave(series);
}

/* Charges of one bucket, either all above the limit or none.  Beside them there is room for the values of both series. */
static void charge(struct series *series, struct epoch *epoch, const struct fe_charges *charges)
{
	struct series *values = values_of(series);
	uint32_t most = series->values ? UINT32_MAX / 2 : UINT32_MAX;
	uint32_t *bucket = &epoch->buckets[series_bucket(charges->first)];
	int64_t sum_before = epoch->stats.sum;

	if (charges->count > most - *bucket) {
		lose(series, epoch, charges->count);
		return;
	}
	*bucket += (uint32_t)charges->count;
	fe_stats_add_charges(&epoch->stats, charges);
	values->magnitudes += fe_magnitude(epoch->stats.sum - sum_before);
	series_follow(series, epoch, series_size(series, charges->first));
	if (series->run_length)
		series_exceed(series, epoch, charges->count - 1);
}

/* The least charge that is in the first one's bucket, and above the limit if that one is. */
static int64_t least_alike(const struct series *series, int64_t first)
{
	int64_t least = fe_bucket_least(first, SERIES_K);
	bool exceeds = first > 0 && (uint64_t)first > series->limit_ns;

	return exceeds && (uint64_t)least <= series->limit_ns ? (int64_t)series->limit_ns + 1 : least;
}

void series_add_charges(struct series *series, const struct fe_charges *charges)
{
	struct series *values = values_of(series);
	struct epoch *entered = series_enter(values), *epoch = &series->epochs[entered - values->epochs];
	struct fe_charges left = *charges;

	series_sync_recording(values, entered);
	if (values->charged)
		part(values);
	if (!fe_charges_fit(&left, SERIES_SUM_MOST - values->magnitudes)) {
		lose(series, epoch, left.count);
		left.count = 0;
	}
	while (left.count) {
		struct fe_charges alike = fe_charges_take(&left, least_alike(series, left.first));

		charge(series, epoch, &alike);
	}
	series_leave(values);
}

void series_add_missed(struct series *series, uint64_t count)
{
	series_enter(series)->missed += count;
	series_leave(series);
}

void series_flip(struct series *series)
{
	uint32_t next = !atomic_load(&series->current);

	if (series->values)
		return;
	series->epochs[next].sum_most = 0;
	series->epochs[next].recording = series->recordings;
	atomic_store(&series->current, next);
	series->busy_at_flip = atomic_load(&series->busy);
}

struct epoch *series_flipped(struct series *series)
{
	const struct series *values = values_of(series);
	uint32_t busy = values->busy_at_flip;

	/* An add takes nanoseconds; one that lasts was preempted, so let others run meanwhile.  Looks are counted, not
	 * time: a process that was stopped has had no time to finish. */
	for (int64_t looks = 0; (busy & 1) && atomic_load(&values->busy) == busy; looks++) {
		if (looks == STUCK_LOOKS)
			return NULL;
		nanosleep(&(struct timespec){.tv_nsec = STUCK_LOOK_NS}, NULL);
	}
	return &series->epochs[!atomic_load(&values->current)];
}

void series_begin_with_flip(struct series *series)
{
	series->recordings++;
}
