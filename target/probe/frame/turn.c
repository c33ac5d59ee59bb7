/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "turn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "online.h"
#include "record.h"
#include "settings.h"
#include "source.h"

#define MIB (1 << 20)
/* A disk that takes nothing for so long is not waited for any longer. */
#define PATIENCE_NS (600 * NS_PER_S)
/* A current file of more than this part of what all may take is ended early, so that it can make room itself. */
#define PARTS 4

static void say(const char *what, const char *why)
{
	char text[REASON_SIZE];
	int error, size = snprintf(text, sizeof(text), "fastenough: the ring: %s%s%s\n", what, *why ? ": " : "", why);

	output_write(STDERR_FILENO, text, (size_t)size, &error);
}

void turns_open(struct run *run)
{
	const struct settings *settings = run->settings;

	run->turns = calloc(1, sizeof(*run->turns));
	if (!run->turns)
		abort();
	ring_open(&run->turns->ring, settings->ring, settings->ring_keep_ns, settings->ring_mib * MIB);
}

/*
 * Writing -----------------------------------------------------------------------------------------
 */

/* Reported once to standard error, however often it is tried. */
static void cannot_write(struct run *run, int error)
{
	if (!run->turns->error)
		say("cannot write; measuring continues, and lost data is counted", strerror(error));
	run->turns->error = error ? error : EIO;
}

void turn_begin_file(struct run *run)
{
	struct ring *ring = &run->turns->ring;

	do {
		run->record_fd = ring_begin(ring, run->run_id);
	} while (run->record_fd < 0 && ring_make_room(ring, errno));
	run->record_broken = false;
	run->record_owned = true;
	run->recorded_bytes = 0;
	if (run->record_fd < 0)
		cannot_write(run, errno);
}

size_t turn_write_rest(struct run *run, const char *text, size_t size, int *error)
{
	size_t done = 0;

	while (*error && ring_make_room(&run->turns->ring, *error))
		done += output_write(run->record_fd, text + done, size - done, error);
	return done;
}

void turn_line_lost(struct run *run, int error)
{
	cannot_write(run, error);
}

/*
 * Notes of a recording on the time before it --------------------------------------------------------
 */

static void tell(struct run *run, int64_t value, const char *text)
{
	record_event(run, "note", NULL, run->begin.mono_ns, value, text);
}

/* The wall clock is all that two lives of a program share, and may have been set between them. */
static void tell_before(struct run *run)
{
	struct ring_before *before = &run->turns->ring.before;
	int64_t gap_ns = run->begin.wall_ns - before->written_ns;
	char text[REASON_SIZE];

	if (!*before->name)
		return;
	snprintf(text, sizeof(text), "gap: %s %s; nothing was recorded for %lld s before this recording (by the wall clock)",
		 before->name, before->ended ? "ended normally" : "was interrupted", (long long)(gap_ns / NS_PER_S));
	tell(run, gap_ns, text);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void tell_lost(struct run *run)
{
	struct turns *turns = run->turns;
	char text[REASON_SIZE];

	if (!turns->lost_intervals)
		return;
	snprintf(text, sizeof(text), "gap: %" PRIu64 " interval%s with %" PRIu64 " value%s before this recording could not be written%s%s",
		 turns->lost_intervals, plural(turns->lost_intervals), turns->lost_values, plural(turns->lost_values), turns->error ? ": " : "", turns->error ? strerror(turns->error) : "");
	tell(run, (int64_t)turns->lost_values, text);
}

static void tell_dropped(struct run *run)
{
	struct ring *ring = &run->turns->ring;
	char text[REASON_SIZE];

	if (!ring->dropped || !recording(run))
		return;
	snprintf(text, sizeof(text), "dropped: %" PRIu64 " recording%s of the ring deleted early for room", ring->dropped,
		 plural(ring->dropped));
	tell(run, (int64_t)ring->dropped, text);
	say(text, "");
	ring->dropped = 0;
}

/* A file gets its name when what it tells of the time before it is in it: whoever is killed in between has begun no recording. */
void turn_head_written(struct run *run)
{
	struct turns *turns = run->turns;
	int error;

	turns->begun_ns = run->begin.mono_ns;
	if (run->record_fd < 0)
		return;
	tell_before(run);
	tell_lost(run);
	error = run->record_broken ? turns->error : ring_name(&turns->ring, run->record_fd);
	if (error) {
		cannot_write(run, error);
		ring_give_up(&turns->ring, run->record_fd);
		run->record_fd = -1;
		return;
	}
	*turns->ring.before.name = '\0';
	turns->lost_intervals = turns->lost_values = 0;
	if (turns->error)
		say("recording has resumed", "");
	turns->error = 0;
}

/*
 * From one recording to the next ------------------------------------------------------------------
 */

static uint64_t stored(const struct run *run)
{
	uint64_t sum = 0;

	for_each_series(entry, run)
		sum += entry->series->total.count;
	return sum;
}

static bool turn_due(const struct run *run)
{
	const struct turns *turns = run->turns;

	/* Intervals end a little after their time, now more, now less. */
	return !recording(run) || run->recorded_bytes > turns->ring.most_bytes / PARTS ||
	       mono_ns() - turns->begun_ns >= run->settings->ring_cycle_ns - run->settings->report_ns / 2;
}

/* The interval is on disk, as far as that can be had. */
static void keep(struct run *run)
{
	struct turns *turns = run->turns;

	if (recording(run) && fdatasync(run->record_fd)) {
		run->record_broken = true;
		cannot_write(run, errno);
	}
	if (recording(run)) {
		turns->kept_intervals = run->seq;
		turns->kept_values = stored(run);
	}
	ring_trim(&turns->ring, run->recorded_bytes);
	tell_dropped(run);
}

static void begin_anew(struct run *run)
{
	struct turns *turns = run->turns;

	turns->lost_intervals += run->seq - turns->kept_intervals;
	turns->lost_values += stored(run) - turns->kept_values;
	turns->kept_intervals = turns->kept_values = 0;
	for_each_series(entry, run)
		series_reset_totals(entry->series);
	if (run->source)
		run->source->begin_totals(run);
	run->seq = run->events = run->events_dropped = 0;
	run->at_start = run->at_begin;
	run_name(run);
}

static void turn(struct run *run)
{
	settings_read_after(run);
	settings_compare(run);
	if (run->source && run->source->settings_after)
		run->source->settings_after(run);
	if (atomic_load(&run->stop))
		return; /* it is over: what follows a last interval is said then */
	record_end(run);
	json_free(&run->line); /* the end is the longest line by far, and the longer the more was seen */
	settings_restart(run);
	if (run->record_fd >= 0)
		ring_end(&run->turns->ring, run->record_fd);
	begin_anew(run);
	turn_begin_file(run);
	record_head(run);
	turn_head_written(run);
}

void turn_interval(struct run *run)
{
	bool due = run->turns && turn_due(run);

	for_each_series(entry, run)
		if (due)
			series_begin_with_flip(entry->series);
	record_interval(run);
	if (run->turns)
		keep(run);
	if (due)
		turn(run);
	online_check(run);
}

int64_t turn_patience_ns(const struct run *run)
{
	return run->turns ? PATIENCE_NS : 0;
}

void turns_close(struct run *run)
{
	if (run->record_fd >= 0)
		ring_end(&run->turns->ring, run->record_fd);
}
