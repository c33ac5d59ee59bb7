/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recording: one write(2) per line, so that a cut never tears more than the last. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

#ifndef MAX_EVENTS
#define MAX_EVENTS 10000
#endif

const char *const outcome_names[] = {
	[OUTCOME_COMPLETED] = "completed",
	[OUTCOME_FAILED] = "failed",
	[OUTCOME_ABORTED] = "aborted",
	[OUTCOME_NOT_APPLICABLE] = "not-applicable",
};

/* The summary and messages would be written over the recording.  Devices take what several write to them. */
static bool shared(const struct stat *file, int fd)
{
	struct stat other;

	return !S_ISCHR(file->st_mode) && fstat(fd, &other) == 0 && other.st_dev == file->st_dev && other.st_ino == file->st_ino;
}

static void open_file(struct run *run, const char *path)
{
	struct stat file;

	run->record_fd = output_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
	if (run->record_fd < 0 && errno == EEXIST)
		run->record_fd = output_open(path, O_WRONLY | O_CLOEXEC);
	if (run->record_fd < 0 && errno == EINTR)
		return; /* a signal ended the run, before anybody read this FIFO */
	if (run->record_fd < 0)
		bad_input("cannot write the recording %s: %s; name a file that can be written", path, output_trouble(errno));
	if (fstat(run->record_fd, &file))
		return;
	if (shared(&file, STDOUT_FILENO) || shared(&file, STDERR_FILENO))
		bad_input("the recording %s is what standard output or error goes to; record to another file, or with --record -",
			  path);
	if (lseek(run->record_fd, 0, SEEK_END) > 0)
		bad_input("the recording %s exists already; choose another name or remove it", path);
	run->record_ours = S_ISREG(file.st_mode);
}

void record_open(struct run *run)
{
	const char *path = run->settings->record;

	run->record_fd = -1;
	if (path && !strcmp(path, "-"))
		run->record_fd = STDOUT_FILENO;
	else if (path)
		open_file(run, path);
}

/* What others wrote to standard output, or to this file since, is not ours to cut. */
static void take_back_torn_line(const struct run *run, size_t written)
{
	struct stat file;

	if (run->record_ours && fstat(run->record_fd, &file) == 0 && file.st_size == run->recorded_bytes + (off_t)written &&
	    ftruncate(run->record_fd, run->recorded_bytes) == 0)
		lseek(run->record_fd, run->recorded_bytes, SEEK_SET);
}

/* What was recorded stays readable: readers pass over a last line that is torn. */
static void record_line(struct run *run)
{
	size_t written;
	int error;

	json_newline(&run->line);
	written = output_write(run->record_fd, run->line.text, run->line.used, &error);
	if (error) {
		run->record_broken = true;
		take_back_torn_line(run, written);
		run_unwritten(run, "the recording cannot be continued (what it holds stays readable)", error);
		return;
	}
	run->recorded_bytes += (int64_t)run->line.used;
}

static bool recording(const struct run *run)
{
	return run->record_fd >= 0 && !run->record_broken;
}

static void line_begin(struct run *run, const char *type)
{
	json_clear(&run->line);
	json_open(&run->line, '{');
	json_member_text(&run->line, "type", type);
}

static void line_end(struct run *run)
{
	json_close(&run->line, '}');
	record_line(run);
}

static void write_instant(struct json *json, const char *name, struct instant instant)
{
	json_key(json, name);
	json_open(json, '{');
	json_member_int(json, "mono_ns", instant.mono_ns);
	json_member_int(json, "wall_ns", instant.wall_ns);
	json_close(json, '}');
}

void json_counters(struct json *json, const struct counters *counters)
{
	json_key(json, "counters");
	json_open(json, '{');
	for (int i = 0; i < COUNTERS; i++) {
		json_key(json, counter_names[i]);
		if (counters->known[i])
			json_int(json, counters->value[i]);
		else
			json_null(json);
	}
	json_close(json, '}');
}

/*
 * head -------------------------------------------------------------------------------------------
 */

void json_labels(struct json *json, const struct series_label *labels)
{
	if (!labels[0].name)
		return;
	json_key(json, "labels");
	json_open(json, '{');
	for (int i = 0; i < MAX_LABELS && labels[i].name; i++)
		json_member_text(json, labels[i].name, labels[i].value);
	json_close(json, '}');
}

static void write_series(struct json *json, const struct series *series)
{
	const struct series_spec *spec = &series->spec;

	json_open(json, '{');
	json_member_int(json, "id", series->id);
	json_member_text(json, "name", spec->name);
	json_member_text(json, "unit", "ns");
	json_member_text(json, "clock", spec->clock ? spec->clock : "monotonic");
	json_member_text(json, "from", spec->from);
	json_member_text(json, "to", spec->to);
	json_member_int(json, "k", SERIES_K);
	if (!spec->any_cpu)
		json_member_int(json, "cpu", spec->cpu);
	if (spec->period_ns)
		json_member_int(json, "period_ns", spec->period_ns);
	if (spec->bytes)
		json_member_int(json, "bytes", spec->bytes);
	json_labels(json, spec->labels);
	if (spec->refused)
		json_member_text(json, "refused", spec->refused);
	json_close(json, '}');
}

static void write_setting(struct json *json, const struct setting *setting)
{
	json_open(json, '{');
	json_member_text(json, "name", setting->name);
	if (setting->cpu >= 0)
		json_member_int(json, "cpu", setting->cpu);
	if (*setting->thread)
		json_member_text(json, "thread", setting->thread);
	json_key(json, "asked");
	json_raw(json, setting->asked, strlen(setting->asked));
	json_key(json, "granted");
	json_raw(json, setting->granted, strlen(setting->granted));
	if (*setting->reason)
		json_member_text(json, "reason", setting->reason);
	json_close(json, '}');
}

static void write_tool(struct json *json)
{
	json_key(json, "tool");
	json_open(json, '{');
	json_member_text(json, "name", "fastenough-probe");
	json_member_text(json, "version", PROBE_VERSION);
	json_member_text(json, "build", PROBE_BUILD);
	json_close(json, '}');
}

static void write_parameters(struct json *json, const struct run *run)
{
	json_key(json, "parameters");
	json_open(json, '{');
	json_member_text(json, "policy", policy_names[run->settings->policy]);
	json_member_int(json, "duration_ns", run->settings->duration_ns);
	json_member_int(json, "loops", run->settings->loops);
	if (run->parameters.used)
		json_raw(json, ",", 1);
	json_raw(json, run->parameters.text ? run->parameters.text : "", run->parameters.used);
	json_close(json, '}');
}

static void write_marks(struct json *json, const struct run *run)
{
	json_key(json, "marks");
	json_open(json, '[');
	if (machine_is_virtual())
		json_text(json, "virtual-machine");
	if (run->self_measured)
		json_text(json, "self-measured");
	if (!settings_real_time(run))
		json_text(json, "not-real-time");
	json_close(json, ']');
}

static void write_cost(struct json *json, const struct run *run)
{
	json_key(json, "cost");
	json_open(json, '{');
	json_key(json, "clock_read_ns");
	json_fixed(json, run->clock_read_ns_thousandths);
	json_key(json, "record_ns");
	json_fixed(json, run->record_ns_thousandths);
	json_close(json, '}');
}

void record_head(struct run *run)
{
	struct json *json = &run->line;

	if (!recording(run))
		return;
	line_begin(run, "head");
	json_member_text(json, "format", "fastenough-recording");
	json_member_int(json, "version", 1);
	write_tool(json);
	json_member_text(json, "run_id", run->run_id);
	json_member_text(json, "probe", run->probe->name);
	json_member_text(json, "implementation", "linux-user");
	write_parameters(json, run);
	json_key(json, "series");
	json_open(json, '[');
	for_each_series(entry, run)
		write_series(json, entry->series);
	json_close(json, ']');
	json_key(json, "settings");
	json_open(json, '[');
	for (int i = 0; i < run->asked_count; i++)
		write_setting(json, &run->asked[i]);
	json_close(json, ']');
	write_cost(json, run);
	json_member_int(json, "interval_ns", run->settings->report_ns);
	write_instant(json, "begin", run->begin);
	write_marks(json, run);
	line_end(run);
}

/*
 * interval, event, end ---------------------------------------------------------------------------
 */

void json_stats(struct json *json, const struct fe_stats *stats)
{
	if (stats->count) {
		json_member_int(json, "min", stats->min);
		json_member_int(json, "max", stats->max);
	}
	json_member_int(json, "sum", stats->sum);
	json_key(json, "sum_sq");
	json_decimal(json, stats->sum_sq_lo, stats->sum_sq_hi);
}

static void write_bucket(struct json *json, int32_t index, uint32_t count)
{
	json_open(json, '[');
	json_int(json, index);
	json_uint(json, count);
	json_close(json, ']');
}

static void write_buckets(struct json *json, const struct epoch *epoch)
{
	int32_t last = series_bucket(epoch->stats.max);
	int32_t i = epoch_next_filled(epoch, series_bucket(epoch->stats.min), last);

	json_key(json, "buckets");
	json_open(json, '[');
	for (; epoch->stats.count && i <= last; i = epoch_next_filled(epoch, i + 1, last))
		write_bucket(json, i, epoch->buckets[i]);
	json_close(json, ']');
}

static void write_epoch(struct json *json, const struct series *series, const struct epoch *epoch)
{
	json_open(json, '{');
	json_member_int(json, "id", series->id);
	json_member_uint(json, "count", epoch->stats.count);
	json_member_uint(json, "lost", epoch->lost);
	json_member_uint(json, "missed", epoch->missed);
	json_stats(json, &epoch->stats);
	write_buckets(json, epoch);
	json_close(json, '}');
}

static void drain(struct run *run, struct series *series)
{
	struct epoch *epoch = series_flipped(series);

	if (!epoch) {
		run_fail(run, "series %s of CPU %d could not be read: its worker is stuck", series->spec.name, series->spec.cpu);
		return;
	}
	if (recording(run))
		write_epoch(&run->line, series, epoch);
	series_settle(series, epoch);
}

static void write_event(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
			const char *text)
{
	struct json *json = &run->line;

	line_begin(run, "event");
	json_member_text(json, "kind", kind);
	write_instant(json, "at", (struct instant){at_mono_ns, at_mono_ns + run->machine.wall_offset_ns});
	if (series) {
		json_member_int(json, "series", series->id);
		if (!series->spec.any_cpu)
			json_member_int(json, "cpu", series->spec.cpu);
	}
	json_member_int(json, "value", value);
	if (text)
		json_member_text(json, "text", text);
	line_end(run);
}

static bool events_used_up(const struct run *run)
{
	return run->events >= MAX_EVENTS;
}

void record_event(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		  const char *text)
{
	if (!recording(run))
		return;
	if (events_used_up(run)) {
		run->events_dropped++;
		return;
	}
	run->events++;
	write_event(run, kind, series, at_mono_ns, value, text);
}

/* The last maximum is the run's: it waits for the end where the events are used up. */
static void record_maximum(struct run *run, struct series *series, const struct notice *notice)
{
	if (notice->value <= series->told_ns) { /* one that came later was read before it */
		run->events_dropped++;
		return;
	}
	series->told_ns = notice->value;
	if (!events_used_up(run)) {
		record_event(run, "max", series, notice->mono_ns, notice->value, NULL);
		return;
	}
	run->events_dropped += series->untold.maximum;
	series->untold = *notice;
}

static void record_notice(struct run *run, struct series *series, const struct notice *notice)
{
	if (notice->maximum)
		record_maximum(run, series, notice);
	if (notice->over_threshold)
		record_event(run, "threshold", series, notice->mono_ns, notice->value, NULL);
}

static void record_notices(struct run *run, struct series *series)
{
	struct notice notice;

	while (series_next_notice(series, &notice))
		record_notice(run, series, &notice);
}

static void record_crowded(struct run *run, struct series *series)
{
	if (series->crowded.maximum)
		record_notice(run, series, &series->crowded);
	series->crowded.maximum = false;
}

/*
 * The clock is read next to the flips, so that an act lies in the interval that it is counted in.  Nobody acts any more
 * when all workers have ended: how long it takes to see that is not part of the run.
 */
static struct instant part_series(struct run *run)
{
	int64_t ended_ns = run->begin.mono_ns;
	struct instant end;

	for_each_series(entry, run)
		series_flip(entry->series);
	end = instant_now();
	if (atomic_load(&run->workers_done) < run->worker_count)
		return end;
	for_each_worker(worker, run)
		ended_ns = worker->ended_ns > ended_ns ? worker->ended_ns : ended_ns;
	return (struct instant){ended_ns, end.wall_ns - (end.mono_ns - ended_ns)};
}

void record_interval(struct run *run)
{
	struct instant end = part_series(run);
	struct counters now, since;
	struct json *json = &run->line;

	for_each_series(entry, run)
		record_notices(run, entry->series);
	machine_read(run, &now);
	since = counters_since(&now, &run->at_begin);
	line_begin(run, "interval");
	json_member_uint(json, "seq", run->seq++);
	write_instant(json, "begin", run->begin);
	write_instant(json, "end", end);
	json_key(json, "series");
	json_open(json, '[');
	for_each_series(entry, run)
		drain(run, entry->series);
	json_close(json, ']');
	json_counters(json, &since);
	if (recording(run))
		line_end(run);
	for_each_series(entry, run)
		record_crowded(run, entry->series);
	run->begin = end;
	run->at_begin = now;
}

static void write_total(struct json *json, const struct series *series)
{
	json_open(json, '{');
	json_member_int(json, "id", series->id);
	json_member_uint(json, "taken", series->total.count + series->total_lost);
	json_member_uint(json, "stored", series->total.count);
	json_member_uint(json, "lost", series->total_lost);
	json_member_uint(json, "missed", series->total_missed);
	json_stats(json, &series->total);
	json_close(json, '}');
}

void json_reasons(struct json *json, const struct run *run)
{
	json_key(json, "reasons");
	json_open(json, '[');
	if (run->reason_written)
		json_text(json, run->reason);
	json_close(json, ']');
}

/* How many samples the file of samples holds, and how many there was no room for. */
static void write_samples(struct json *json, const struct run *run)
{
	uint64_t kept = 0, lost = 0;

	if (!run->samples)
		return;
	for (const struct samples *samples = run->samples; samples; samples = samples->next) {
		kept += samples->kept_total;
		lost += samples->lost_total;
	}
	json_key(json, "samples");
	json_open(json, '{');
	json_member_uint(json, "kept", kept);
	json_member_uint(json, "lost", lost);
	json_close(json, '}');
}

void record_end(struct run *run)
{
	struct counters since = counters_since(&run->at_begin, &run->at_start);
	struct json *json = &run->line;
	uint64_t dropped = run->events_dropped;

	if (!recording(run))
		return;
	for_each_series(entry, run)
		if (entry->series->untold.maximum)
			write_event(run, "max", entry->series, entry->series->untold.mono_ns, entry->series->untold.value, NULL);
	line_begin(run, "end");
	json_member_text(json, "outcome", outcome_names[run->outcome]);
	json_reasons(json, run);
	write_instant(json, "at", run->begin);
	json_key(json, "series");
	json_open(json, '[');
	for_each_series(entry, run) {
		write_total(json, entry->series);
		dropped += entry->series->events_dropped;
	}
	json_close(json, ']');
	json_counters(json, &since);
	json_key(json, "settings_changed");
	json_open(json, '[');
	json_raw(json, run->changes.text ? run->changes.text : "", run->changes.used);
	json_close(json, ']');
	json_member_uint(json, "events_dropped", dropped);
	write_samples(json, run);
	line_end(run);
}
