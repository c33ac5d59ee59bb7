/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chunk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "log.h"

#define MAX_PACKED ((1 << 20) - 1024) /* the server's limit includes the topic */
#define MAX_LINES (1 << 20)           /* bytes of lines of several intervals */
#define LEVEL 3

struct text {
	char *bytes;
	size_t size, room;
};

static void add(struct text *text, const char *bytes, size_t size)
{
	if (text->size + size > text->room) {
		text->room = 2 * (text->size + size);
		text->bytes = realloc(text->bytes, text->room);
		if (!text->bytes)
			abort();
	}
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
}

static void add_preface(struct text *text, const struct board *board, const struct recording *recording, int64_t first,
			int64_t oldest)
{
	char preface[512];
	int size = snprintf(preface, sizeof(preface),
			    "{\"fleet\":1,\"machine\":\"%s\",\"type\":\"%s\",\"run\":\"%s\",\"first\":%" PRId64 ",\"oldest\":%" PRId64
			    "}\n", board->machine, board->type, recording->run, first, oldest);

	add(text, preface, (size_t)size);
	add(text, recording->head, recording->head_size);
}

/* Events precede their interval; those that do not fit into the chunk with it are omitted. */
static void add_intervals(struct text *text, struct position *position, struct lines *lines, int most)
{
	size_t begin = text->size, complete = text->size;
	struct line line;

	for (int count = 0; count < most && lines_next(lines, &line);) {
		bool fits = text->size - begin + line.size <= MAX_LINES;

		if (line_is_interval(&line, position->interval)) {
			if (!fits && count > 0)
				break;
			add(text, line.text, line.size);
			complete = text->size;
			*position = (struct position){position->interval + 1, lines->offset};
			count++;
		} else if (fits && line_is(&line, "event")) {
			add(text, line.text, line.size);
		} else if (line_is(&line, "interval")) {
			break;
		}
	}
	text->size = complete;
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
	bool packed;

	chunk->after = recording->sent;
	if (!lines_open(&lines, folder, recording->name, recording->sent.offset))
		return false;
	add_preface(&text, board, recording, recording->sent.interval, 0);
	add_intervals(&text, &chunk->after, &lines, most);
	lines_close(&lines);
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

struct chunk chunk_make(const struct board *board, const struct recording *recording, int folder)
{
	struct chunk chunk = {.after = recording->counted};

	if (recording->removed) {
		pack_loss(&chunk, board, recording);
		return chunk;
	}
	if (pack_intervals(&chunk, board, recording, folder, INT32_MAX) || pack_intervals(&chunk, board, recording, folder, 1))
		return chunk;
	if (chunk.after.interval > recording->sent.interval) {
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
