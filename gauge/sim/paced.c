/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The gauge at the pace of the wall clock: its serial line on a pseudo-terminal, its pins on a unix
 * socket.  The words on that socket are in pins.h.
 *
 * The simulation runs a little behind the clock (GUARD_NS), and once more behind after each change
 * of its output until the board's answer is in, so that edges from outside lie in its future and can
 * be placed at the very cycle that their time stamps mean:
 *
 *     cycle of the answer = cycle of the stimulus + time from sending to answer x 16 MHz
 *
 * An edge that comes too late for that is put back in time, but never across a wrap of the timer,
 * where the firmware could not tell any more which wrap it belongs to.  When several come so late at
 * once (this machine was busy), they are dealt out: the firmware must get to see each of them.
 *
 * When this program was stopped for a while, it makes up for the time; the edges that came meanwhile wait
 * in their order for their cycles (edges.c).  What it cannot do rightly ends it, with a word why.
 *
 * SIGUSR1 is the reset button.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "edges.h"
#include "machine.h"
#include "pins.h"

#define GUARD_NS 150000
#define SLICE_NS 20000
#define SLICE_CYCLES 160
#define BROKEN 4   /* exit status */
#define UNSENT 65536
#define WORDS 4096 /* read at once */
#define COUNTED (2 * PINS_LINE)

struct bench {
	struct machine machine;
	int listener, client, terminal, terminal_end;
	const char *socket_path, *link_path;
	int64_t start_ns;
	int awaiting; /* the output has changed, the input has not yet followed */
	int broken;   /* it has been said why */
	avr_cycle_count_t out_cycle;
	int64_t out_ns;
	struct edges edges;
	char words[WORDS];
	size_t words_length;
	uint8_t unsent[UNSENT];
	size_t unsent_length;
	unsigned long out_edges, bytes_dropped;
	int64_t most_behind_ns;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static avr_cycle_count_t cycles_in(int64_t ns)
{
	return ns > 0 ? (avr_cycle_count_t)ns * CYCLES_PER_US / 1000 : 0;
}

static void fail(struct bench *bench, const char *why)
{
	fprintf(stderr, "%s\n", why);
	bench->broken = 1;
}

/* The pins: a socket on which one board at a time is connected. */

static void drop_client(struct bench *bench)
{
	close(bench->client);
	bench->client = -1;
	bench->words_length = 0;
	bench->awaiting = 0;
}

static void tell_board(struct bench *bench, const char *line, size_t length)
{
	ssize_t sent = bench->client < 0 ? 0 : send(bench->client, line, length, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (bench->client < 0 || sent == (ssize_t)length)
		return;
	if (sent >= 0 || errno == EAGAIN)
		fail(bench, "the board does not read its pins");
	drop_client(bench);
}

static void tell_output(struct bench *bench, int level, avr_cycle_count_t when)
{
	char line[PINS_LINE];

	bench->out_ns = now_ns();
	tell_board(bench, line, (size_t)snprintf(line, sizeof(line), "out %d %" PRIu64 " %" PRId64 "\n", level,
						 (uint64_t)when, bench->out_ns));
}

static size_t counters(const struct bench *bench, char *line, size_t size)
{
	return (size_t)snprintf(line, size, "edges_out=%lu edges_in=%lu edges_waiting=%u put_back=%lu put_off=%lu "
				"bytes_dropped=%lu most_behind_us=%" PRId64 "\n", bench->out_edges, bench->edges.in,
				bench->edges.count, bench->edges.put_back, bench->edges.put_off, bench->bytes_dropped,
				bench->most_behind_ns / 1000);
}

static void tell_counters(struct bench *bench)
{
	static const char WORD[] = "counted ";
	char line[COUNTED];

	strcpy(line, WORD);
	tell_board(bench, line, strlen(WORD) + counters(bench, line + strlen(WORD), sizeof(line) - strlen(WORD)));
}

static void on_output(void *context, int level, avr_cycle_count_t when)
{
	struct bench *bench = context;

	bench->out_edges++;
	bench->out_cycle = when;
	bench->awaiting = bench->client >= 0;
	tell_output(bench, level, when);
}

static void edge(struct bench *bench, int level, int64_t at_ns)
{
	avr_cycle_count_t at = bench->awaiting ? bench->out_cycle + cycles_in(at_ns - bench->out_ns)
					       : edges_apart(&bench->edges, cycles_in(at_ns - bench->start_ns));

	bench->awaiting = 0;
	if (edges_put(&bench->edges, level, at))
		fail(bench, "edges arrive faster than this machine can simulate the gauge: the buffer is full");
}

static void word(struct bench *bench, const char *line)
{
	int level;
	int64_t at_ns = 0;

	if (!strcmp(line, "count")) {
		tell_counters(bench);
	} else if (sscanf(line, "in %d %" SCNd64, &level, &at_ns) < 1 || (level & ~1)) {
		fprintf(stderr, "pins: '%.40s' is not 'in LEVEL [NS]'\n", line);
		drop_client(bench);
	} else {
		edge(bench, level, at_ns ? at_ns : now_ns());
	}
}

static void hear_pins(struct bench *bench)
{
	ssize_t length = recv(bench->client, bench->words + bench->words_length,
			      sizeof(bench->words) - 1 - bench->words_length, MSG_DONTWAIT);
	char *line = bench->words, *end;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0) {
		drop_client(bench);
		return;
	}
	bench->words_length += (size_t)length;
	bench->words[bench->words_length] = 0;
	for (; bench->client >= 0 && (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		word(bench, line);
	}
	if (bench->client < 0)
		return;
	bench->words_length = strlen(line);
	memmove(bench->words, line, bench->words_length + 1);
	if (bench->words_length >= PINS_LINE)
		drop_client(bench);
}

static void welcome_board(struct bench *bench)
{
	int client = accept4(bench->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client < 0)
		return;
	if (bench->client >= 0)
		drop_client(bench);
	bench->client = client;
	tell_output(bench, bench->machine.timer.output, bench->machine.avr->cycle);
}

static int open_pins(struct bench *bench)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(bench->socket_path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, bench->socket_path);
	bench->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bench->listener < 0 || bind(bench->listener, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return listen(bench->listener, 1);
}

/* The serial line: a pseudo-terminal. */

static void on_byte(void *context, uint8_t byte)
{
	struct bench *bench = context;

	if (bench->unsent_length == UNSENT)
		bench->bytes_dropped++;
	else
		bench->unsent[bench->unsent_length++] = byte;
}

static void hear_terminal(struct bench *bench)
{
	uint8_t byte;

	while (bench->machine.uart_ready && read(bench->terminal, &byte, 1) == 1)
		machine_give(&bench->machine, byte);
}

static void tell_terminal(struct bench *bench)
{
	ssize_t length = bench->unsent_length ? write(bench->terminal, bench->unsent, bench->unsent_length) : 0;

	if (length <= 0)
		return;
	bench->unsent_length -= (size_t)length;
	memmove(bench->unsent, bench->unsent + length, bench->unsent_length);
}

static int open_terminal(struct bench *bench)
{
	struct termios raw;

	bench->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (bench->terminal < 0 || grantpt(bench->terminal) || unlockpt(bench->terminal))
		return -1;
	/* kept open, so that a program that leaves does not hang the line up */
	bench->terminal_end = open(ptsname(bench->terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (bench->terminal_end < 0 || tcgetattr(bench->terminal_end, &raw))
		return -1;
	cfmakeraw(&raw);
	if (tcsetattr(bench->terminal_end, TCSANOW, &raw))
		return -1;
	if (!bench->link_path)
		return 0;
	return symlink(ptsname(bench->terminal), bench->link_path);
}

/* The pace. */

static volatile sig_atomic_t ended, reset;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		reset = 1;
	else
		ended = 1;
}

static avr_cycle_count_t goal(struct bench *bench, int64_t now)
{
	avr_cycle_count_t by_clock = cycles_in(now - bench->start_ns - GUARD_NS);
	avr_cycle_count_t by_answer = bench->out_cycle + cycles_in(now - bench->out_ns - GUARD_NS);

	return bench->awaiting && by_answer < by_clock ? by_answer : by_clock;
}

/* Runs up to the goal, a slice at most; stops when the output changes, because that moves the goal. */
static void run(struct bench *bench, avr_cycle_count_t end)
{
	unsigned long out_edges = bench->out_edges;
	avr_t *avr = bench->machine.avr;

	if (end > avr->cycle + cycles_in(SLICE_NS))
		end = avr->cycle + cycles_in(SLICE_NS);
	while (avr->cycle < end && bench->out_edges == out_edges) {
		if (machine_step(&bench->machine)) {
			fail(bench, "the firmware has crashed");
			return;
		}
	}
}

static void press_reset(struct bench *bench)
{
	reset = 0;
	edges_clear(&bench->edges);
	bench->awaiting = 0;
	machine_reset(&bench->machine);
	bench->start_ns = now_ns() - (int64_t)(bench->machine.avr->cycle * 1000 / CYCLES_PER_US);
}

static void look_around(struct bench *bench, int may_wait)
{
	struct pollfd wanted[] = {
		{ .fd = bench->listener, .events = POLLIN },
		{ .fd = bench->client, .events = POLLIN },
		{ .fd = bench->terminal, .events = POLLIN },
	};
	struct timespec wait = { .tv_nsec = may_wait ? SLICE_NS : 0 };

	if (ppoll(wanted, 3, &wait, NULL) <= 0)
		return;
	if (wanted[1].revents)
		hear_pins(bench);
	if (wanted[0].revents)
		welcome_board(bench);
	if (wanted[2].revents)
		hear_terminal(bench);
}

static int pace(struct bench *bench)
{
	while (!ended && !bench->broken) {
		int64_t now = now_ns();
		avr_cycle_count_t end = goal(bench, now);
		int ahead = bench->machine.avr->cycle >= end;
		int64_t behind_ns = now - bench->start_ns -
				    (int64_t)(bench->machine.avr->cycle * 1000 / CYCLES_PER_US);

		if (behind_ns > bench->most_behind_ns)
			bench->most_behind_ns = behind_ns;
		if (!ahead)
			run(bench, end);
		look_around(bench, ahead);
		tell_terminal(bench);
		if (reset)
			press_reset(bench);
	}
	return bench->broken ? BROKEN : 0;
}

static void tidy(const struct bench *bench)
{
	unlink(bench->socket_path);
	if (bench->link_path)
		unlink(bench->link_path);
}

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s --pins SOCKET [--link PATH] MCU FIRMWARE.elf\n", name);
	return 2;
}

static int options(struct bench *bench, int argc, char **argv)
{
	static const struct option LONG[] = {
		{ "pins", required_argument, NULL, 'p' }, { "link", required_argument, NULL, 'l' }, { 0 }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
		if (option == 'p')
			bench->socket_path = optarg;
		else if (option == 'l')
			bench->link_path = optarg;
		else
			return -1;
	}
	return bench->socket_path && argc - optind == 2 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct bench bench = { .client = -1 };
	const struct sigaction end = { .sa_handler = on_signal };
	char line[COUNTED];
	int status;

	if (options(&bench, argc, argv))
		return usage(argv[0]);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	sigaction(SIGUSR1, &end, NULL);
	if (machine_load(&bench.machine, argv[optind], argv[optind + 1], on_output, on_byte, &bench))
		return 2;
	bench.machine.avr->run_cycle_limit = SLICE_CYCLES;
	bench.edges.timer = &bench.machine.timer;
	if (open_pins(&bench)) {
		fprintf(stderr, "%s: %s\n", bench.socket_path, strerror(errno));
		return 2;
	}
	if (open_terminal(&bench)) {
		fprintf(stderr, "%s: %s\n", bench.link_path ? bench.link_path : "pseudo-terminal", strerror(errno));
		unlink(bench.socket_path);
		return 2;
	}
	printf("ready terminal=%s pins=%s\n", ptsname(bench.terminal), bench.socket_path);
	fflush(stdout);
	bench.start_ns = now_ns();
	prctl(PR_SET_TIMERSLACK, 1000);
	status = pace(&bench);
	tidy(&bench);
	fwrite(line, counters(&bench, line, sizeof(line)), 1, stdout);
	return status;
}
