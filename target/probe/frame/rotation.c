/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rotation.h"

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
/* Time after which the watchdog ends a run whose disk accepts no data. */
#define WRITE_LIMIT_NS (600 * NS_PER_S)
/* A recording of more than 1/PARTS of the maximum size of the ring is ended early, so that it can be deleted for room. */
#define PARTS 4

static void print_line(const char *what, const char *why)
{
	char text[REASON_SIZE];
	int error, size = snprintf(text, sizeof(text), "fastenough: the ring: %s%s%s\n", what, *why ? ": " : "", why);

	output_write(STDERR_FILENO, text, (size_t)size, &error);
}

void rotation_open(struct run *run)
{
	const struct settings *settings = run->settings;

	run->rotation = calloc(1, sizeof(*run->rotation));
	if (!run->rotation)
		abort();
	ring_open(&run->rotation->ring, settings->ring, settings->ring_keep_ns, settings->ring_mib * MIB);
}

/*
 * Writing -----------------------------------------------------------------------------------------
 */

/* Reported to standard error once per failure, not per attempt. */
static void cannot_write(struct run *run, int error)
{
	if (!run->rotation->error)
		print_line("cannot write; measuring continues, and lost data is counted", strerror(error));
	run->rotation->error = error ? error : EIO;
}

void rotation_begin_file(struct run *run)
{
	struct ring *ring = &run->rotation->ring;

	do {
		run->record_fd = ring_begin(ring, run->run_id);
	} while (run->record_fd < 0 && ring_make_room(ring, errno));
	run->record_broken = false;
	run->record_owned = true;
	run->recorded_bytes = 0;
	if (run->record_fd < 0)
		cannot_write(run, errno);
}

size_t rotation_write_rest(struct run *run, const char *text, size_t size, int *error)
{
	size_t done = 0;

	while (*error && ring_make_room(&run->rotation->ring, *error))
		done += output_write(run->record_fd, text + done, size - done, error);
	return done;
}

void rotation_line_lost(struct run *run, int error)
{
	cannot_write(run, error);
}

/*
 * Notes about the time before a recording --------------------------------------------------------
 */

static void note(struct run *run, int64_t value, const char *text)
{
	record_event(run, "note", NULL, run->begin.mono_ns, value, text);
}

/* Only the wall clock is comparable across restarts, and it may have been set in between. */
static void note_interruption(struct run *run)
{
	struct ring_before *before = &run->rotation->ring.before;
	int64_t gap_ns = run->begin.wall_ns - before->written_ns;
	char text[REASON_SIZE];

	if (!*before->name)
		return;
	snprintf(text, sizeof(text), "gap: %s %s; nothing was recorded for %lld s before this recording (by the wall clock)",
		 before->name, before->ended ? "ended normally" : "was interrupted", (long long)(gap_ns / NS_PER_S));
	note(run, gap_ns, text);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void note_lost(struct run *run)
{
	struct rotation *rotation = run->rotation;
	char text[REASON_SIZE];

	if (!rotation->lost_intervals)
		return;
	snprintf(text, sizeof(text), "gap: %" PRIu64 " interval%s with %" PRIu64 " value%s before this recording could not be written%s%s",
		 rotation->lost_intervals, plural(rotation->lost_intervals), rotation->lost_values, plural(rotation->lost_values), rotation->error ? ": " : "", rotation->error ? strerror(rotation->error) : "");
	note(run, (int64_t)rotation->lost_values, text);
}

static void note_dropped(struct run *run)
{
	struct ring *ring = &run->rotation->ring;
	char text[REASON_SIZE];

	if (!ring->dropped || !recording(run))
		return;
	snprintf(text, sizeof(text), "dropped: %" PRIu64 " recording%s of the ring deleted early for room", ring->dropped,
		 plural(ring->dropped));
	note(run, (int64_t)ring->dropped, text);
	print_line(text, "");
	ring->dropped = 0;
}

/* A file gets its name after its notes about the time before it are written: if killed earlier, the probe has begun no
 * recording. */
void rotation_head_written(struct run *run)
{
	struct rotation *rotation = run->rotation;
	int error;

	rotation->begun_ns = run->begin.mono_ns;
	if (run->record_fd < 0)
		return;
	note_interruption(run);
	note_lost(run);
	error = run->record_broken ? rotation->error : ring_name(&rotation->ring, run->record_fd);
	if (error) {
		cannot_write(run, error);
		ring_discard(&rotation->ring, run->record_fd);
		run->record_fd = -1;
		return;
	}
	*rotation->ring.before.name = '\0';
	rotation->lost_intervals = rotation->lost_values = 0;
	if (rotation->error)
		print_line("recording has resumed", "");
	rotation->error = 0;
}

/*
 * From one recording to the next ------------------------------------------------------------------
 */

static uint64_t value_count(const struct run *run)
{
	uint64_t sum = 0;

	for_each_series(entry, run)
		sum += entry->series->total.count;
	return sum;
}

static bool rotation_due(const struct run *run)
{
	const struct rotation *rotation = run->rotation;

	/* Intervals end with a small, varying delay. */
	return !recording(run) || run->recorded_bytes > rotation->ring.max_bytes / PARTS ||
	       mono_ns() - rotation->begun_ns >= run->settings->ring_cycle_ns - run->settings->report_ns / 2;
}

/* Writes the interval to disk and trims the ring. */
static void sync_interval(struct run *run)
{
	struct rotation *rotation = run->rotation;

	if (recording(run) && fdatasync(run->record_fd)) {
		run->record_broken = true;
		cannot_write(run, errno);
	}
	if (recording(run)) {
		rotation->stored_intervals = run->seq;
		rotation->stored_values = value_count(run);
	}
	ring_trim(&rotation->ring, run->recorded_bytes);
	note_dropped(run);
}

static void reset_counts(struct run *run)
{
	struct rotation *rotation = run->rotation;

	rotation->lost_intervals += run->seq - rotation->stored_intervals;
	rotation->lost_values += value_count(run) - rotation->stored_values;
	rotation->stored_intervals = rotation->stored_values = 0;
	for_each_series(entry, run)
		series_reset_totals(entry->series);
	if (run->source)
		run->source->begin_totals(run);
	run->seq = run->events = run->events_dropped = 0;
	run->at_start = run->at_begin;
	run_name(run);
}

static void rotate(struct run *run)
{
	settings_read_after(run);
	settings_compare(run);
	if (run->source && run->source->settings_after)
		run->source->settings_after(run);
	if (atomic_load(&run->stop))
		return; /* the run has ended: its end line follows the last interval */
	record_end(run);
	json_free(&run->line); /* the end line is by far the longest; free its memory */
	settings_restart(run);
	if (run->record_fd >= 0)
		ring_end(&run->rotation->ring, run->record_fd);
	reset_counts(run);
	rotation_begin_file(run);
	record_head(run);
	rotation_head_written(run);
}

void rotation_interval(struct run *run)
{
	bool due = run->rotation && rotation_due(run);

	for_each_series(entry, run)
		if (due)
			series_begin_with_flip(entry->series);
	record_interval(run, due);
	if (run->rotation)
		sync_interval(run);
	if (due)
		rotate(run);
	online_check(run);
}

int64_t rotation_write_limit_ns(const struct run *run)
{
	return run->rotation ? WRITE_LIMIT_NS : 0;
}

void rotation_close(struct run *run)
{
	if (run->record_fd >= 0)
		ring_end(&run->rotation->ring, run->record_fd);
}
