/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chunk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "boot_clock.h"
#include "events.h"
#include "log.h"

#define MAX_PACKED ((1 << 20) - 1024) /* the server's limit includes the topic */
#define MAX_LINES (1 << 20)           /* bytes of lines of several intervals */
#define LEVEL 3

/* Takers use it to recognise intervals recorded before the clock was set. */
static int64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec < 0 ? 0 : now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void add_preface(struct text *text, const struct board *board, const struct recording *recording, int64_t first,
			int64_t oldest)
{
	char preface[512];
	int size = snprintf(preface, sizeof(preface),
			    "{\"fleet\":1,\"machine\":\"%s\",\"type\":\"%s\",\"run\":\"%s\",\"first\":%" PRId64 ",\"oldest\":%" PRId64
			    ",\"now_ns\":%" PRId64 "}\n", board->machine, board->type, recording->run, first, oldest, wall_ns());

	text_add(text, preface, (size_t)size);
	text_add(text, recording->head, recording->head_size);
}

/* Events precede their interval.  Returns the number of those before the first interval that are omitted. */
static size_t add_intervals(struct text *text, struct position *position, struct lines *lines, int most)
{
	struct events events = {.most = MAX_LINES};
	size_t begin = text->size, omitted = 0;
	struct line line;

	for (int count = 0; count < most && lines_next(lines, &line);) {
		if (count > 0 && text->size - begin + events.lines.size + line.size > MAX_LINES)
			break;
		if (line_is_interval(&line, position->interval)) {
			omitted += events_take(&events, text);
			text_add(text, line.text, line.size);
			*position = (struct position){position->interval + 1, lines->offset};
			count++;
		} else if (line_is(&line, "event")) {
			events_add(&events, &line);
		} else if (line_is(&line, "interval")) {
			break;
		}
	}
	events_free(&events);
	return omitted;
}

/* False if it is too long for a chunk. */
static bool pack(struct chunk *chunk, const struct text *text)
{
	size_t room = ZSTD_compressBound(text->size), size;

	chunk->payload = malloc(room);
	if (!chunk->payload)
		abort();
	size = ZSTD_compress(chunk->payload, room, text->bytes, text->size, LEVEL);
	chunk->size = ZSTD_isError(size) ? 0 : size;
	if (chunk->size && chunk->size <= MAX_PACKED)
		return true;
	chunk_free(chunk);
	return false;
}

static bool pack_intervals(struct chunk *chunk, const struct board *board, const struct recording *recording, int folder,
			   int most)
{
	struct text text = {0};
	struct lines lines;
	size_t omitted;
	bool packed;

	chunk->after = recording->sent;
	if (!lines_open(&lines, folder, recording->name, recording->sent.offset))
		return false;
	add_preface(&text, board, recording, recording->sent.interval, 0);
	omitted = add_intervals(&text, &chunk->after, &lines, most);
	lines_close(&lines);
	if (omitted)
		log_once(LOG_RING, "%zu events before interval %" PRId64 " of %s do not fit into a chunk and are omitted", omitted,
		    recording->sent.interval, recording->name);
	packed = chunk->after.interval > recording->sent.interval && pack(chunk, &text);
	free(text.bytes);
	return packed;
}

static void pack_loss(struct chunk *chunk, const struct board *board, const struct recording *recording)
{
	struct text text = {0};

	add_preface(&text, board, recording, chunk->after.interval, chunk->after.interval);
	if (!pack(chunk, &text))
		log_once(LOG_RING, "the head of %s is too long for a chunk", recording->name);
	free(text.bytes);
}

static bool stored_all(const struct recording *recording)
{
	return recording->stored.interval >= recording->sent.interval;
}

struct chunk chunk_make(const struct board *board, const struct recording *recording, int folder)
{
	struct chunk chunk = {.after = recording->counted};

	if (recording->removed) {
		pack_loss(&chunk, board, recording);
		return chunk;
	}
	if (pack_intervals(&chunk, board, recording, folder, INT32_MAX) || pack_intervals(&chunk, board, recording, folder, 1))
		return chunk;
	/* Takers count all before a reported loss as lost: earlier chunks must be stored first. */
	if (chunk.after.interval > recording->sent.interval && stored_all(recording)) {
		log_line("interval %" PRId64 " of %s is too long for a chunk and is lost", recording->sent.interval, recording->name);
		pack_loss(&chunk, board, recording);
	}
	return chunk;
}

void chunk_free(struct chunk *chunk)
{
	free(chunk->payload);
	chunk->payload = NULL;
	chunk->size = 0;
}
