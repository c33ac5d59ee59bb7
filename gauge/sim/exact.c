/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The gauge in simulated time, with a board of exactly known delays, controlled by a script on standard input.  The board
 * records its own histograms, for comparison with the gauge's.
 *
 *   say TEXT             send a line, run until the reply's last line, print the reply
 *   type TEXT            send a line without waiting
 *   run CYCLES           let time pass
 *   follow MIN MAX       the board answers each edge after MIN to MAX cycles, drawn evenly
 *   deaf N               the board misses the next N edges
 *   square PERIOD JITTER LOW N   the board falls N times, every PERIOD + 0 to JITTER cycles, low for LOW
 *   still                the board does nothing
 *   expect PERIOD        deviations of falls are counted from this period
 *   truth K              print the board's own histograms in the gauge's format, and clear them
 *   trace FILE           from now on write each edge as a line `out|in LEVEL CYCLE`
 *   raw FILE             from now on write each byte of the serial line
 *   cost                 print cycles simulated and CPU time used
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "board.h"

#define REPLY_TIMEOUT_CYCLES (60ull * MACHINE_HZ)

static void end_line(struct bench *bench)
{
	bench->line[bench->line_length] = 0;
	bench->line_length = 0;
	if (bench->echo)
		puts(bench->line);
	if (!strncmp(bench->line, "ok", 2) || !strncmp(bench->line, "error", 5))
		bench->replied = 1;
}

static void on_byte(void *context, uint8_t byte)
{
	struct bench *bench = context;

	if (bench->raw)
		fputc(byte, bench->raw);
	if (byte == 0)
		bench->in_frame = !bench->in_frame; /* raw samples are not part of replies */
	else if (bench->in_frame)
		return;
	else if (byte == '\n')
		end_line(bench);
	else if (byte != '\r' && bench->line_length < sizeof(bench->line) - 1)
		bench->line[bench->line_length++] = (char)byte;
}

static void step(struct bench *bench)
{
	if (machine_step(&bench->machine)) {
		fprintf(stderr, "the firmware has crashed\n");
		exit(1);
	}
}

static void run(struct bench *bench, avr_cycle_count_t cycles)
{
	avr_cycle_count_t end = bench->machine.avr->cycle + cycles;

	while (bench->machine.avr->cycle < end)
		step(bench);
}

static void send_line(struct bench *bench, const char *text)
{
	for (const char *c = text;; c++) {
		while (!machine_receive(&bench->machine, *c ? (uint8_t)*c : '\n'))
			step(bench);
		if (!*c)
			return;
	}
}

static void send_command(struct bench *bench, const char *text)
{
	avr_cycle_count_t limit = bench->machine.avr->cycle + REPLY_TIMEOUT_CYCLES;

	bench->replied = 0;
	bench->echo = 1;
	send_line(bench, text);
	while (!bench->replied && bench->machine.avr->cycle < limit)
		step(bench);
	bench->echo = 0;
	if (!bench->replied)
		puts("silence");
}

static FILE *open_output(const char *path)
{
	FILE *file = fopen(path, "wb");

	if (!file) {
		perror(path);
		exit(2);
	}
	return file;
}

static void print_cost(const struct bench *bench)
{
	printf("cycles=%" PRIu64 " cpu_ms=%ld\n", (uint64_t)bench->machine.avr->cycle,
	       (long)(clock() / (CLOCKS_PER_SEC / 1000)));
}

static int execute(struct bench *bench, const char *command, const char *arguments)
{
	if (!strcmp(command, "say")) {
		send_command(bench, arguments);
	} else if (!strcmp(command, "type")) {
		send_line(bench, arguments);
	} else if (!strcmp(command, "run")) {
		run(bench, strtoull(arguments, NULL, 10));
	} else if (!strcmp(command, "follow")) {
		bench->follows = sscanf(arguments, "%lu %lu", &bench->delay_min, &bench->delay_max) == 2;
	} else if (!strcmp(command, "deaf")) {
		bench->deaf = strtoul(arguments, NULL, 10);
	} else if (!strcmp(command, "square")) {
		if (board_square(bench, arguments)) {
			fprintf(stderr, "square needs PERIOD JITTER LOW N\n");
			return -1;
		}
	} else if (!strcmp(command, "still")) {
		board_stop(bench);
	} else if (!strcmp(command, "expect")) {
		bench->expected = strtoul(arguments, NULL, 10);
	} else if (!strcmp(command, "truth")) {
		board_print_histograms(bench, (unsigned)strtoul(arguments, NULL, 10));
	} else if (!strcmp(command, "trace")) {
		bench->trace = open_output(arguments);
	} else if (!strcmp(command, "raw")) {
		bench->raw = open_output(arguments);
	} else if (!strcmp(command, "cost")) {
		print_cost(bench);
	} else {
		fprintf(stderr, "unknown script command '%s'\n", command);
		return -1;
	}
	fflush(stdout);
	return 0;
}

static int run_script(struct bench *bench)
{
	char line[512];

	while (fgets(line, sizeof(line), stdin)) {
		char *arguments;

		line[strcspn(line, "\n")] = 0;
		arguments = line + strcspn(line, " ");
		if (*arguments)
			*arguments++ = 0;
		if (*line && execute(bench, line, arguments))
			return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct bench bench = { .random = 12345 };
	int status;

	if (argc != 3) {
		fprintf(stderr, "usage: %s MCU FIRMWARE.elf <SCRIPT\n", argv[0]);
		return 2;
	}
	if (board_begin(&bench))
		return 1;
	if (machine_load(&bench.machine, argv[1], argv[2], board_output_changed, on_byte, &bench))
		return 2;
	status = run_script(&bench);
	if (bench.trace)
		fclose(bench.trace);
	if (bench.raw)
		fclose(bench.raw);
	return status;
}
