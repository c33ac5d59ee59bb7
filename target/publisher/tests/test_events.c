/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of an interval that are too many for a chunk: the greatest one of each series is published, wherever it is written,
 * and of the others the greatest ones, in the order of the recording.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "check.h"
#include "chunk.h"
#include "json_scan.h"

#define NAME "0000000001-r-1.jsonl"
#define EVENTS 9000 /* of 480 bytes: four times what a chunk holds */
#define LINE 480
#define MOST_BYTES (1 << 20)
#define SERIES 3

struct published {
	int64_t values[EVENTS + SERIES]; /* of events before the first interval */
	int events, intervals, after;    /* events before a later one */
};

static const struct board board = {"0123456789abcdef0123456789abcdef", "tested"};
static char folder[] = "/tmp/test-events-XXXXXX";
static int64_t values[EVENTS]; /* all different */

static void write_event(FILE *file, int series, int64_t value)
{
	int size = fprintf(file, "{\"type\":\"event\",\"kind\":\"max\",\"series\":%d,\"value\":%" PRId64 ",\"culprit\":{\"task\":\"",
			   series, value);

	fprintf(file, "%*s\"}}\n", LINE - size - 4, "robot");
}

static void write_interval(FILE *file, int64_t seq)
{
	fprintf(file, "{\"type\":\"interval\",\"seq\":%" PRId64 "}\n", seq);
}

static FILE *write_head(const char *mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, NAME);
	file = fopen(path, mode);
	CHECK(file);
	fprintf(file, "{\"type\":\"head\",\"run_id\":\"r-1\",\"boot_id\":\"b\"}\n");
	return file;
}

/* 1000 to 1000 + EVENTS - 1, in a random order. */
static void draw_values(void)
{
	for (int i = 0; i < EVENTS; i++) {
		int other = (int)(random() % (i + 1));

		values[i] = values[other];
		values[other] = 1000 + i;
	}
}

static int64_t value_of(const struct line *line)
{
	struct json_value found;
	int64_t value;

	CHECK(json_member(line->text, line->size, "value", &found) && json_count(&found, INT64_MAX, &value));
	return value;
}

static struct published unpack(const struct chunk *chunk)
{
	static char text[16 << 20];
	struct published published = {0};
	size_t size = ZSTD_decompress(text, sizeof(text), chunk->payload, chunk->size);

	CHECK(!ZSTD_isError(size));
	for (const char *at = text, *end = text + size; at < end;) {
		struct line line = {at, (size_t)((const char *)memchr(at, '\n', (size_t)(end - at)) - at) + 1};

		if (line_is(&line, "interval"))
			published.intervals++;
		else if (line_is(&line, "event") && published.intervals)
			published.after++;
		else if (line_is(&line, "event"))
			published.values[published.events++] = value_of(&line);
		at += line.size;
	}
	return published;
}

/* The chunks of the file, up to `most`. */
static int publish(struct published *published, int most)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY), count = 0;
	struct recording *recording = recording_open(directory, NAME);
	int64_t budget = INT64_MAX;

	CHECK(recording);
	recording_count(recording, directory, &budget);
	while (count < most && recording->sent.interval < recording->counted.interval) {
		struct chunk chunk = chunk_make(&board, recording, directory);

		CHECK(chunk.payload && chunk.after.interval > recording->sent.interval);
		published[count++] = unpack(&chunk);
		recording->sent = chunk.after;
		chunk_free(&chunk);
	}
	recording_free(recording);
	close(directory);
	return count;
}

/* The last events are the greatest of each series, as a monitor writes them; those of series 2 are short. */
static void check_greatest(void)
{
	const int64_t last[SERIES] = {1000000, 999000, 7};
	struct published published;
	FILE *file = write_head("w");
	int kept = MOST_BYTES / LINE, next = 0;

	for (int i = 0; i < EVENTS; i++)
		write_event(file, i % 2, values[i]);
	for (int series = 0; series < SERIES; series++)
		write_event(file, series, last[series]);
	write_interval(file, 0);
	fclose(file);
	CHECK(publish(&published, 1) == 1 && published.intervals == 1 && published.events == kept);
	for (int i = 0; i < EVENTS; i++)
		if (values[i] >= 1000 + EVENTS - (kept - SERIES))
			CHECK(published.values[next++] == values[i]);
	for (int series = 0; series < SERIES; series++)
		CHECK(published.values[next++] == last[series]);
	CHECK(next == kept);
}

/* Events of no series have other values; one that is longer than a chunk leaves room for the others. */
static void check_others(void)
{
	struct published published;
	FILE *file = write_head("w");

	fprintf(file, "{\"type\":\"event\",\"kind\":\"max\",\"series\":0,\"value\":9999999,\"text\":\"%*s\"}\n", MOST_BYTES, "");
	for (int i = 0; i < EVENTS; i++)
		fprintf(file, "{\"type\":\"event\",\"kind\":\"clock-step\",\"value\":5000000000,\"text\":\"%*s\"}\n", LINE, "");
	write_event(file, 0, 30);
	write_event(file, 0, 20);
	write_interval(file, 0);
	fclose(file);
	CHECK(publish(&published, 1) == 1 && published.intervals == 1 && published.events > 2);
	CHECK(published.values[0] == 5000000000 && published.values[published.events - 2] == 30);
	CHECK(published.values[published.events - 1] == 20);
}

/* Events that do not fit behind earlier intervals begin the next chunk. */
static void check_next_chunk(void)
{
	const int many = MOST_BYTES / LINE - 10;
	struct published published[3];
	FILE *file = write_head("w");

	write_interval(file, 0);
	for (int i = 0; i < 20; i++)
		write_event(file, 0, i);
	write_interval(file, 1);
	for (int i = 0; i < many; i++)
		write_event(file, 0, i);
	write_interval(file, 2);
	fclose(file);
	CHECK(publish(published, 3) == 2);
	CHECK(published[0].events == 0 && published[0].after == 20 && published[0].intervals == 2);
	CHECK(published[1].events == many && published[1].after == 0 && published[1].intervals == 1);
}

int main(void)
{
	char path[128];

	CHECK(mkdtemp(folder));
	draw_values();
	check_greatest();
	check_others();
	check_next_chunk();
	snprintf(path, sizeof(path), "%s/%s", folder, NAME);
	unlink(path);
	return rmdir(folder);
}
