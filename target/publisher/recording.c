/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json_scan.h"
#include "log.h"

#define BLOCK (64 << 10)
#define MAX_HEAD (1 << 20)

/*
 * Lines -------------------------------------------------------------------------------------------
 */

bool lines_open(struct lines *lines, int folder, const char *name, int64_t offset)
{
	struct stat found;

	*lines = (struct lines){.offset = offset};
	lines->file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (lines->file < 0)
		return false;
	if (fstat(lines->file, &found) || !S_ISREG(found.st_mode)) {
		close(lines->file);
		errno = EBADMSG;
		return false;
	}
	return true;
}

void lines_close(struct lines *lines)
{
	free(lines->text);
	close(lines->file);
}

/* Moves unread text to the front, and makes room for another block. */
static void make_room(struct lines *lines)
{
	if (lines->begin)
		memmove(lines->text, lines->text + lines->begin, lines->size - lines->begin);
	lines->size -= lines->begin;
	lines->begin = 0;
	if (lines->size + BLOCK <= lines->room)
		return;
	lines->room = lines->room ? 2 * lines->room : 2 * BLOCK;
	lines->text = realloc(lines->text, lines->room);
	if (!lines->text)
		abort();
}

static bool read_block(struct lines *lines)
{
	ssize_t got;

	make_room(lines);
	if (lines->size >= RECORDING_MAX_LINE) {
		lines->too_long = true;
		return false;
	}
	got = pread(lines->file, lines->text + lines->size, BLOCK, lines->offset + (int64_t)lines->size);
	if (got <= 0)
		return false;
	lines->size += (size_t)got;
	return true;
}

bool lines_next(struct lines *lines, struct line *line)
{
	size_t searched = 0;

	for (;;) {
		size_t held = lines->size - lines->begin;
		const char *begin = lines->text ? lines->text + lines->begin : NULL;
		const char *feed = held > searched ? memchr(begin + searched, '\n', held - searched) : NULL;

		if (feed) {
			*line = (struct line){begin, (size_t)(feed - begin) + 1};
			lines->begin += line->size;
			lines->offset += (int64_t)line->size;
			return true;
		}
		searched = held;
		if (!read_block(lines))
			return false;
	}
}

bool line_is(const struct line *line, const char *type)
{
	struct json_value value;

	return json_member(line->text, line->size, "type", &value) && json_is(&value, type);
}

bool line_is_interval(const struct line *line, int64_t interval)
{
	struct json_value value;
	int64_t number;

	return line_is(line, "interval") && json_member(line->text, line->size, "seq", &value) &&
	       json_count(&value, RECORDING_MAX_INTERVALS, &number) && number == interval;
}

/*
 * A recording -------------------------------------------------------------------------------------
 */

static bool valid_run(const char *run)
{
	return *run && run[strspn(run, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static bool parse_head(struct recording *recording, const struct line *line)
{
	struct json_value value;

	if (line->size > MAX_HEAD || !line_is(line, "head") || !json_member(line->text, line->size, "run_id", &value) ||
	    !json_plain(&value, recording->run, sizeof(recording->run)) || !valid_run(recording->run))
		return false;
	if (json_member(line->text, line->size, "boot_id", &value))
		json_plain(&value, recording->boot, sizeof(recording->boot));
	return true;
}

struct recording *recording_open(int folder, const char *name)
{
	struct recording *recording;
	struct lines lines;
	struct line line;

	if (!lines_open(&lines, folder, name, 0))
		return NULL;
	recording = calloc(1, sizeof(*recording));
	if (!recording)
		abort();
	if (!lines_next(&lines, &line) || !parse_head(recording, &line)) {
		free(recording);
		lines_close(&lines);
		errno = EBADMSG;
		return NULL;
	}
	snprintf(recording->name, sizeof(recording->name), "%s", name);
	recording->head_size = line.size;
	recording->head = malloc(line.size);
	if (!recording->head)
		abort();
	memcpy(recording->head, line.text, line.size);
	recording->begin.offset = (int64_t)line.size;
	recording->counted = recording->stored = recording->sent = recording->begin;
	lines_close(&lines);
	return recording;
}

void recording_free(struct recording *recording)
{
	free(recording->head);
	free(recording);
}

/* Whether the line that is being read is the end, as the probe and the monitor begin it.  Of a long run with many CPUs it
 * may be too long to be read; nothing follows it, and it is not published. */
static bool begins_end(const struct lines *lines)
{
	static const char begin[] = "{\"type\":\"end\",";
	size_t length = sizeof(begin) - 1;

	return lines->size - lines->begin >= length && !memcmp(lines->text + lines->begin, begin, length);
}

/* Advances a position over complete intervals, up to interval `to`; false if the lines end before. */
static bool advance(struct recording *recording, struct lines *lines, struct position *position, int64_t to, int64_t *budget)
{
	struct line line;

	while (position->interval < to && *budget > 0) {
		if (!lines_next(lines, &line)) {
			recording->damaged |= lines->too_long && !begins_end(lines);
			return false;
		}
		*budget -= (int64_t)line.size;
		if (!line_is(&line, "interval"))
			continue;
		if (!line_is_interval(&line, position->interval)) {
			recording->damaged = true;
			return false;
		}
		*position = (struct position){position->interval + 1, lines->offset};
	}
	return true;
}

void recording_count(struct recording *recording, int folder, int64_t *budget)
{
	struct lines lines;
	struct stat found;

	if (recording->damaged || fstatat(folder, recording->name, &found, AT_SYMLINK_NOFOLLOW) ||
	    (recording->complete && found.st_size == recording->bytes))
		return;
	if (!lines_open(&lines, folder, recording->name, recording->counted.offset))
		return;
	recording->bytes = found.st_size;
	recording->complete = !advance(recording, &lines, &recording->counted, RECORDING_MAX_INTERVALS, budget);
	lines_close(&lines);
	if (recording->damaged)
		log_line("%s is damaged: interval %" PRId64 " and all that follow are not published", recording->name,
		    recording->counted.interval);
}

struct position recording_position(struct recording *recording, int folder, int64_t interval)
{
	struct position position = recording->stored.interval <= interval ? recording->stored : recording->begin;
	int64_t budget = INT64_MAX;
	struct lines lines;

	if (recording->sent.interval == interval)
		return recording->sent;
	if (lines_open(&lines, folder, recording->name, position.offset)) {
		advance(recording, &lines, &position, interval, &budget);
		lines_close(&lines);
	}
	return position;
}
