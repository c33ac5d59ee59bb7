/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings and answers of every kind, under the sanitizers: files that grow, are cut off anywhere, hold bytes or lines in
 * the wrong order, vanish; answers of pieces joined at random.  Each chunk must hold the intervals that it states.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "check.h"
#include "chunk.h"
#include "delivery.h"
#include "json_scan.h"

#define ROUNDS 3000
#define FILES 4
#define MOST_CHUNK (1 << 20)

static const char *const pieces[] = {
	"{", "}", "[", "]", "\"", ":", ",", "\\", " ", "0", "9", "-1", "1.5", "1099511627775", "1099511627776",
	"99999999999999999999", "null", "\"run\"", "\"next\"", "\"type\"", "\"seq\"", "\"interval\"", "\"r-0\"", "\"r-1\"",
	"{\"run\":\"r-1\",\"next\":", "{\"next\":3,\"run\":", "\"r\\u002d1\"", "\xff", "{\"type\":\"interval\",\"seq\":", "\n",
};

static char folder[] = "/tmp/fuzz-publisher-XXXXXX";

static unsigned draw(unsigned below)
{
	return (unsigned)random() % below;
}

static size_t make_text(char *text, size_t room)
{
	size_t size = 0;

	for (unsigned count = draw(10); count; count--) {
		const char *piece = pieces[draw(sizeof(pieces) / sizeof(*pieces))];

		if (size + strlen(piece) < room)
			size += (size_t)sprintf(text + size, "%s", piece);
	}
	return size;
}

static void write_line(FILE *file, int64_t *seq)
{
	char text[600];

	switch (draw(20)) {
	case 0:
		fwrite(text, 1, make_text(text, sizeof(text)), file);
		break;
	case 1:
		fprintf(file, "{\"type\":\"interval\",\"seq\":%" PRId64, *seq); /* torn, or joined with the next one */
		break;
	case 2:
		fprintf(file, "{\"type\":\"event\",\"kind\":\"note\"}\n");
		break;
	case 3:
		fprintf(file, "{\"type\":\"end\"}\n");
		break;
	default:
		fprintf(file, "{\"type\":\"interval\",\"seq\":%" PRId64 ",\"text\":\"%*s\"}\n", (*seq)++, (int)draw(300), "");
	}
}

static void grow(int number)
{
	static int64_t seqs[FILES];
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%010d-r-%d.jsonl", folder, number, number);
	if (draw(30) == 0) {
		unlink(path);
		seqs[number] = 0;
		return;
	}
	file = fopen(path, "a");
	CHECK(file);
	if (ftell(file) == 0 || draw(100) == 0)
		fprintf(file, draw(20) ? "{\"type\":\"head\",\"run_id\":\"r-%d\",\"boot_id\":\"b%d\"}\n" : "{\"type\":\"head\"", number,
			number / 2);
	for (unsigned lines = draw(6); lines; lines--)
		write_line(file, &seqs[number]);
	fclose(file);
}

static int64_t number_of(const char *text, size_t size, const char *key)
{
	struct json_value value;
	int64_t number;

	CHECK(json_member(text, size, key, &value) && json_count(&value, RECORDING_MAX_INTERVALS, &number));
	return number;
}

/* A preface, a head, and then whole lines, of which the intervals follow each other. */
static void check_chunk(const struct chunk *chunk)
{
	static char text[16 << 20];
	size_t size = ZSTD_decompress(text, sizeof(text), chunk->payload, chunk->size);
	const char *line = text, *end = text + size;
	int64_t interval;

	CHECK(!ZSTD_isError(size) && chunk->size <= MOST_CHUNK && size && end[-1] == '\n');
	interval = number_of(text, size, "first");
	for (int number = 0; line < end; number++) {
		const char *feed = memchr(line, '\n', (size_t)(end - line));
		struct line now = {line, (size_t)(feed - line) + 1};

		CHECK(number != 1 || line_is(&now, "head"));
		if (number > 1 && line_is(&now, "interval"))
			CHECK(line_is_interval(&now, interval++));
		line = feed + 1;
	}
	CHECK(interval == chunk->after.interval);
}

static void answer(struct ring_view *ring, int64_t now_ns)
{
	char text[600];
	size_t size;

	if (draw(2))
		size = (size_t)snprintf(text, sizeof(text), "{\"run\":\"r-%u\",\"next\":%u}", draw(FILES), draw(40));
	else
		size = make_text(text, sizeof(text));
	delivery_answer(ring, text, size, now_ns);
}

static void check_answers(void)
{
	struct ring_view none = {.folder = -1};
	static const char stored[] = "{\"run\": \"r-1\", \"next\": 7, \"later\": {\"a\": [1, \"}\"]}}";

	CHECK(number_of(stored, sizeof(stored) - 1, "next") == 7);
	CHECK(!delivery_answer(&none, stored, sizeof(stored) - 1, 0));
}

int main(void)
{
	static const struct board board = {"0123456789abcdef0123456789abcdef", "fuzzed"};
	struct ring_view ring = {.path = folder, .folder = -1};
	int64_t now_ns = 0;
	unsigned chunks = 0;

	CHECK(mkdtemp(folder));
	check_answers();
	for (int round = 0; round < ROUNDS; round++) {
		struct recording *recording;

		grow((int)draw(FILES));
		ring_view_scan(&ring);
		for (int turn = 0; turn < 4 && (recording = delivery_next(&ring, now_ns)); turn++) {
			struct chunk chunk = chunk_make(&board, recording, ring.folder);

			if (!chunk.payload)
				break;
			check_chunk(&chunk);
			delivery_sent(recording, chunk.after, now_ns);
			chunk_free(&chunk);
			chunks++;
		}
		answer(&ring, now_ns);
		if (draw(50) == 0)
			delivery_restart(&ring);
		now_ns += INT64_C(1000000) << draw(16);
	}
	CHECK(chunks > ROUNDS / 10);
	ring_view_free(&ring);
	for (int number = 0; number < FILES; number++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%010d-r-%d.jsonl", folder, number, number);
		unlink(path);
	}
	return rmdir(folder);
}
