/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recording: one write(2) per line, so that a cut never tears more than the last. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "online.h"
#include "record.h"
#include "rotation.h"

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
		bad_input("cannot write the recording %s: %s; name a file that can be written", path, output_error_text(errno));
	if (fstat(run->record_fd, &file))
		return;
	if (shared(&file, STDOUT_FILENO) || shared(&file, STDERR_FILENO))
		bad_input("the recording %s is also standard output or standard error; record to another file, or use --record -",
			  path);
	if (lseek(run->record_fd, 0, SEEK_END) > 0)
		bad_input("the recording %s exists already; choose another name or remove it", path);
	run->record_owned = S_ISREG(file.st_mode);
}

void record_open(struct run *run)
{
	const char *path = run->settings->record;

	run->record_fd = -1;
	online_begin(run);
	if (run->settings->ring) {
		rotation_open(run);
		rotation_begin_file(run);
	}
	if (path && !strcmp(path, "-"))
		run->record_fd = STDOUT_FILENO;
	else if (path)
		open_file(run, path);
}

/* What others wrote to standard output, or to this file since, is not ours to cut. */
static void take_back_torn_line(const struct run *run, size_t written)
{
	struct stat file;

	if (run->record_owned && fstat(run->record_fd, &file) == 0 && file.st_size == run->recorded_bytes + (off_t)written &&
	    ftruncate(run->record_fd, run->recorded_bytes) == 0)
		lseek(run->record_fd, run->recorded_bytes, SEEK_SET);
}

static void unwritten(struct run *run, int error)
{
	if (run->rotation)
		rotation_line_lost(run, error);
	else
		run_write_failed(run, "the recording cannot be continued (its content so far is readable)", error);
}

/* What was recorded stays readable: readers pass over a last line that is torn. */
static void record_line(struct run *run)
{
	size_t written;
	int error;

	json_newline(&run->line);
	written = output_write(run->record_fd, run->line.text, run->line.used, &error);
	if (error && run->rotation)
		written += rotation_write_rest(run, run->line.text + written, run->line.used - written, &error);
	if (error) {
		run->record_broken = true;
		take_back_torn_line(run, written);
		unwritten(run, error);
		return;
	}
	run->recorded_bytes += (int64_t)run->line.used;
}

bool recording(const struct run *run)
{
	return run->record_fd >= 0 && !run->record_broken;
}

void line_begin(struct run *run, const char *type)
{
	json_clear(&run->line);
	json_open(&run->line, '{');
	json_member_text(&run->line, "type", type);
}

void line_end(struct run *run)
{
	json_close(&run->line, '}');
	record_line(run);
}

void json_instant(struct json *json, const char *name, struct instant instant)
{
	json_key(json, name);
	json_open(json, '{');
	json_member_int(json, "mono_ns", instant.mono_ns);
	json_member_int(json, "wall_ns", instant.wall_ns);
	json_close(json, '}');
}

void json_counter_members(struct json *json, const struct counters *counters)
{
	for (int i = 0; i < COUNTERS; i++) {
		json_key(json, counter_names[i]);
		if (counters->known[i])
			json_int(json, counters->value[i]);
		else
			json_null(json);
	}
}

void json_counters(struct json *json, const struct counters *counters)
{
	json_key(json, "counters");
	json_open(json, '{');
	json_counter_members(json, counters);
	json_close(json, '}');
}

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

void json_reasons(struct json *json, const struct run *run)
{
	json_key(json, "reasons");
	json_open(json, '[');
	if (run->reason_written)
		json_text(json, run->reason);
	json_close(json, ']');
}

void json_setting_place(struct json *json, const struct setting *setting)
{
	json_member_text(json, "name", setting->name);
	if (setting->cpu >= 0)
		json_member_int(json, "cpu", setting->cpu);
	if (*setting->thread)
		json_member_text(json, "thread", setting->thread);
}

static void json_rises(struct json *json, const int64_t *rises)
{
	json_key(json, "rises");
	json_open(json, '[');
	for (int edge = 1; edge <= (int)SERIES_EDGES; edge++) {
		if (rises[edge])
			json_pair(json, edge, rises[edge]);
	}
	json_close(json, ']');
}

void json_order(struct json *json, const struct series *series, const int64_t *rises, const struct exceedances *over,
		uint64_t gaps)
{
	json_rises(json, rises);
	if (series->limit_ns != UINT64_MAX) {
		json_key(json, "limit");
		json_open(json, '{');
		json_member_uint(json, "ns", series->limit_ns);
		json_member_uint(json, "exceeded", over->exceeded);
		json_member_uint(json, "runs", over->runs);
		json_key(json, "sum_sq_runs");
		json_decimal(json, over->sum_sq_lo, over->sum_sq_hi);
		json_member_uint(json, "longest", over->longest);
		json_close(json, '}');
	}
	if (gaps)
		json_member_uint(json, "order_unknown", gaps);
}
