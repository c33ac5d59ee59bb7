/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interval line: the values of every series since the previous one, and the counters of system activity. */
#include "record.h"
#include "source.h"

static void write_pairs(struct json *json, const struct series *series, const struct epoch *epoch, int64_t most)
{
	unsigned k = series_interval_k(series, most);
	int32_t last = series_index(series, epoch->stats.max);
	int32_t i = epoch_next_filled(epoch, series_index(series, epoch->stats.min), last);
	int32_t wide = series_folded(series, i, k);
	uint64_t count = 0;

	json_open(json, '[');
	for (; epoch->stats.count && i <= last; i = epoch_next_filled(epoch, i + 1, last)) {
		if (series_folded(series, i, k) != wide) {
			json_pair(json, wide, (int64_t)count);
			wide = series_folded(series, i, k);
			count = 0;
		}
		count += epoch->buckets[i];
	}
	if (count)
		json_pair(json, wide, (int64_t)count);
	json_close(json, ']');
}

/* Where nothing was charged, the text is that of the values, which the line has already. */
static void write_buckets(struct json *json, struct series *series, const struct epoch *epoch, int64_t most)
{
	json_key(json, "buckets");
	series->text_begin = json->used;
	if (series_repeats(series, epoch))
		json_repeat(json, series->values->text_begin, series->values->text_end);
	else
		write_pairs(json, series, epoch, most);
	series->text_end = json->used;
}

static void write_epoch(struct json *json, struct series *series, const struct epoch *epoch, int64_t k)
{
	json_open(json, '{');
	json_member_int(json, "id", series->id);
	json_member_uint(json, "count", epoch->stats.count);
	json_member_uint(json, "lost", epoch->lost);
	json_member_uint(json, "missed", epoch->missed);
	json_stats(json, &epoch->stats);
	write_buckets(json, series, epoch, k);
	json_order(json, series, epoch->rises, &epoch->over, epoch->gaps);
	json_close(json, '}');
}

static void drain(struct run *run, struct series *series)
{
	struct epoch *epoch = series_flipped(series);

	if (!epoch) {
		run_fail(run, "series %s of CPU %d could not be read: its worker is stuck", series->spec.name, series->spec.cpu);
		return;
	}
	series_complete(series, epoch);
	if (recording(run))
		write_epoch(&run->line, series, epoch, run->settings->interval_k);
	series_accumulate(series, epoch);
}

/* A source has switched its epochs already, at the instant that it returns. */
static struct instant part_source(struct run *run)
{
	struct instant end = run->source->collect(run);

	for_each_series(entry, run)
		series_flip(entry->series);
	return end;
}

/*
 * The clock is read next to the flips, so that an act lies in the interval that it is counted in.  Nobody acts any more
 * when all workers have ended: how long it takes to see that is not part of the run.
 */
static struct instant part_series(struct run *run)
{
	int64_t ended_ns = run->begin.mono_ns;
	struct instant end;

	if (run->source)
		return part_source(run);
	for_each_series(entry, run)
		series_flip(entry->series);
	end = instant_now();
	if (atomic_load(&run->workers_done) < run->worker_count)
		return end;
	for_each_worker(worker, run)
		ended_ns = worker->ended_ns > ended_ns ? worker->ended_ns : ended_ns;
	return (struct instant){ended_ns, end.wall_ns - (end.mono_ns - ended_ns)};
}

void record_interval(struct run *run, bool last)
{
	struct instant end = part_series(run);
	struct counters now, since;
	struct json *json = &run->line;

	for_each_series(entry, run)
		record_events(run, entry->series);
	if (last) /* the publisher sends events with the interval that follows */
		record_deferred_maxima(run);
	machine_read(run, &now);
	since = counters_since(&now, &run->at_begin);
	line_begin(run, "interval");
	json_member_uint(json, "seq", run->seq++);
	json_instant(json, "begin", run->begin);
	json_instant(json, "end", end);
	json_key(json, "series");
	json_open(json, '[');
	for_each_series(entry, run)
		drain(run, entry->series);
	json_close(json, ']');
	json_key(json, "counters");
	json_open(json, '{');
	json_counter_members(json, &since);
	if (run->source)
		run->source->interval_counters(json, run);
	json_close(json, '}');
	if (recording(run))
		line_end(run);
	run->begin = end;
	run->at_begin = now;
}
