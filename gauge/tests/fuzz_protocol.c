/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzing of the text protocol, under the sanitizers: known words, numbers at their limits, random combinations of pieces,
 * random bytes.  Each line must get one end mark.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc16.h"
#include "gauge.h"
#include "host_machine.h"
#include "random.h"

static const char *const PIECES[] = {
	"help", "id", "time", "response", "periodic", "stop", "stats", "hist", "take", "stream on", "stream off",
	" min=", " max=", " timeout=", " count=", " seed=", " period=", " n=", "0", "1", "400", "16777215", "16777216",
	"4294967295", "4294967296", "99999999999999999999", "-1", " ", "=", "*", " *0000", " *FFFF", "\b", "x",
	" min=10 max=20 timeout=1000 count=2", " period=1000 timeout=5000", "\xff", "\x01",
};

static uint32_t state = 1;

static uint32_t draw(uint32_t below)
{
	state = random_next(state);
	return random_within(state, below - 1);
}

static void make_line(char *line, size_t size)
{
	size_t length = 0;

	for (uint32_t pieces = draw(6); pieces; pieces--) {
		const char *piece = PIECES[draw(sizeof(PIECES) / sizeof(PIECES[0]))];

		if (length + strlen(piece) + 8 < size)
			length += (size_t)sprintf(line + length, "%s", piece);
	}
	for (uint32_t bytes = draw(8) == 0 ? draw(110) : 0; bytes && length + 8 < size; bytes--)
		line[length++] = (char)(1 + draw(255));
	for (size_t i = 0; i < length; i++) {
		if (line[i] == '\n' || line[i] == '\r')
			line[i] = ' ';
	}
	line[length] = 0;
	if (draw(2)) {
		uint16_t crc = 0;

		for (size_t i = 0; i < length; i++)
			crc = crc16_add(crc, (uint8_t)line[i]);
		sprintf(line + length, " *%04X", crc);
	}
}

/* The output without the frames of raw samples, which are between zero bytes. */
static const char *text_output(void)
{
	size_t length = 0;
	bool in_frame = false;

	for (size_t at = 0; at < host.output_text_length; at++) {
		if (!host.output_text[at])
			in_frame = !in_frame;
		else if (!in_frame)
			host.output_text[length++] = host.output_text[at];
	}
	host.output_text[length] = 0;
	return host.output_text;
}

static unsigned end_marks(const char *output)
{
	unsigned marks = 0;

	for (const char *line = output; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		marks += !strncmp(line, "ok lines=", 9) || !strncmp(line, "error ", 6);
	return marks;
}

/* An empty line gets no reply, and backspaces may have emptied a line. */
static bool may_be_empty(const char *line)
{
	return !*line || strpbrk(line, "\b\x7f");
}

int main(int argc, char **argv)
{
	unsigned long lines = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	char line[512];

	host_begin();
	host.responds = true;
	host.delay = 7;
	for (unsigned long i = 0; i < lines; i++) {
		const char *output;

		make_line(line, sizeof(line));
		host.ticks += draw(100000);
		host.responds = draw(4);
		host_command(line);
		output = text_output();
		if (end_marks(output) != 1 && !may_be_empty(line)) {
			fprintf(stderr, "the reply to '%s' was '%s'\n", line, output);
			return 1;
		}
		gauge.stream.on = false;
		for (int turn = 0; turn < 20; turn++)
			gauge_serve();
	}
	return 0;
}
