/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The gauge in real time: its serial line on a pseudo-terminal, its pins on a unix stream socket, on which the simulator
 * listens; one board at a time.  A board that sends any other message is disconnected.  Times are CLOCK_MONOTONIC of the
 * machine on which both run.
 *
 * Gauge to board, on each change of its output, and once on connecting:
 *
 *     out LEVEL CYCLE NS      level 0 or 1; the 16 MHz cycle of the change; when this line was sent
 *
 * Board to gauge:
 *
 *     in LEVEL [NS]           the board's output changed to level 0 or 1; when, 0 or omitted: on arrival of this line
 *     count                   requests the simulator's counters: a line `counted NAME=NUMBER ...`
 *
 * The simulation runs slightly behind the clock (GUARD_NS), and after each change of its output slightly behind until the
 * board's answer arrives, so that external edges are in its future and get the exact cycle of their time stamps:
 *
 *     cycle of the answer = cycle of the stimulus + time from sending to answer x 16 MHz
 *
 * An edge that arrives too late for that is moved back in time, but never across a wrap of the timer: the firmware could not
 * detect that wrap.  If several edges arrive too late together (the machine was busy), they are spread, so that the firmware
 * captures each of them.
 *
 * After a stall this program catches up; edges that arrived meanwhile are queued in order for their cycles (edges.c).  If it
 * cannot simulate correctly, it stops with a message.
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

#define GUARD_NS 150000
#define SLICE_NS 20000
#define SLICE_CYCLES 160
#define BROKEN 4        /* exit status */
#define SEND_SIZE 65536
#define MESSAGE_SIZE 128 /* longer than any message */
#define RECEIVE_SIZE 4096
#define COUNTERS_SIZE (2 * MESSAGE_SIZE)

struct bench {
	struct machine machine;
	int listener, client, terminal, terminal_end;
	const char *socket_path, *link_path;
	int64_t start_ns;
	int awaiting; /* the output has changed, and no answer has arrived */
	int broken;   /* the reason was printed */
	avr_cycle_count_t out_cycle;
	int64_t out_ns;
	struct edges edges;
	char received[RECEIVE_SIZE];
	size_t received_length;
	uint8_t send_buffer[SEND_SIZE];
	size_t send_length;
	unsigned long out_edges, bytes_dropped;
	int64_t max_behind_ns;
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

static void fail(struct bench *bench, const char *reason)
{
	fprintf(stderr, "%s\n", reason);
	bench->broken = 1;
}

/* The pins: a socket on which one board at a time is connected. */

static void drop_client(struct bench *bench)
{
	close(bench->client);
	bench->client = -1;
	bench->received_length = 0;
	bench->awaiting = 0;
}

static void send_to_board(struct bench *bench, const char *line, size_t length)
{
	ssize_t sent = bench->client < 0 ? 0 : send(bench->client, line, length, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (bench->client < 0 || sent == (ssize_t)length)
		return;
	if (sent >= 0 || errno == EAGAIN)
		fail(bench, "the board does not read its pins");
	drop_client(bench);
}

static void send_output(struct bench *bench, int level, avr_cycle_count_t when)
{
	char line[MESSAGE_SIZE];

	bench->out_ns = now_ns();
	send_to_board(bench, line, (size_t)snprintf(line, sizeof(line), "out %d %" PRIu64 " %" PRId64 "\n", level,
						 (uint64_t)when, bench->out_ns));
}

static size_t counters(const struct bench *bench, char *line, size_t size)
{
	return (size_t)snprintf(line, size, "edges_out=%lu edges_in=%lu edges_waiting=%u put_back=%lu put_off=%lu "
				"bytes_dropped=%lu most_behind_us=%" PRId64 "\n", bench->out_edges, bench->edges.in,
				bench->edges.count, bench->edges.put_back, bench->edges.put_off, bench->bytes_dropped,
				bench->max_behind_ns / 1000);
}

static void send_counters(struct bench *bench)
{
	static const char PREFIX[] = "counted ";
	char line[COUNTERS_SIZE];

	strcpy(line, PREFIX);
	send_to_board(bench, line, strlen(PREFIX) + counters(bench, line + strlen(PREFIX), sizeof(line) - strlen(PREFIX)));
}

static void on_output(void *context, int level, avr_cycle_count_t when)
{
	struct bench *bench = context;

	bench->out_edges++;
	bench->out_cycle = when;
	bench->awaiting = bench->client >= 0;
	send_output(bench, level, when);
}

static void receive_edge(struct bench *bench, int level, int64_t at_ns)
{
	avr_cycle_count_t at = bench->awaiting ? bench->out_cycle + cycles_in(at_ns - bench->out_ns)
					       : edges_apart(&bench->edges, cycles_in(at_ns - bench->start_ns));

	bench->awaiting = 0;
	if (edges_put(&bench->edges, level, at))
		fail(bench, "edges arrive faster than this machine can simulate the gauge: the buffer is full");
}

static void handle_message(struct bench *bench, const char *line)
{
	int level;
	int64_t at_ns = 0;

	if (!strcmp(line, "count")) {
		send_counters(bench);
	} else if (sscanf(line, "in %d %" SCNd64, &level, &at_ns) < 1 || (level & ~1)) {
		fprintf(stderr, "pins: '%.40s' is not 'in LEVEL [NS]'\n", line);
		drop_client(bench);
	} else {
		receive_edge(bench, level, at_ns ? at_ns : now_ns());
	}
}

static void read_pins(struct bench *bench)
{
	ssize_t length = recv(bench->client, bench->received + bench->received_length,
			      sizeof(bench->received) - 1 - bench->received_length, MSG_DONTWAIT);
	char *line = bench->received, *end;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0) {
		drop_client(bench);
		return;
	}
	bench->received_length += (size_t)length;
	bench->received[bench->received_length] = 0;
	for (; bench->client >= 0 && (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		handle_message(bench, line);
	}
	if (bench->client < 0)
		return;
	bench->received_length = strlen(line);
	memmove(bench->received, line, bench->received_length + 1);
	if (bench->received_length >= MESSAGE_SIZE)
		drop_client(bench);
}

static void accept_board(struct bench *bench)
{
	int client = accept4(bench->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client < 0)
		return;
	if (bench->client >= 0)
		drop_client(bench);
	bench->client = client;
	send_output(bench, bench->machine.timer.output, bench->machine.avr->cycle);
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

	if (bench->send_length == SEND_SIZE)
		bench->bytes_dropped++;
	else
		bench->send_buffer[bench->send_length++] = byte;
}

static void read_terminal(struct bench *bench)
{
	uint8_t byte;

	while (bench->machine.uart_ready && read(bench->terminal, &byte, 1) == 1)
		machine_receive(&bench->machine, byte);
}

static void write_terminal(struct bench *bench)
{
	ssize_t length = bench->send_length ? write(bench->terminal, bench->send_buffer, bench->send_length) : 0;

	if (length <= 0)
		return;
	bench->send_length -= (size_t)length;
	memmove(bench->send_buffer, bench->send_buffer + length, bench->send_length);
}

static int open_terminal(struct bench *bench)
{
	struct termios raw;

	bench->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (bench->terminal < 0 || grantpt(bench->terminal) || unlockpt(bench->terminal))
		return -1;
	/* stays open, so that a program that closes the line does not hang it up */
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

/* Real time. */

static volatile sig_atomic_t ended, reset;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		reset = 1;
	else
		ended = 1;
}

static avr_cycle_count_t target_cycle(struct bench *bench, int64_t now)
{
	avr_cycle_count_t by_clock = cycles_in(now - bench->start_ns - GUARD_NS);
	avr_cycle_count_t by_answer = bench->out_cycle + cycles_in(now - bench->out_ns - GUARD_NS);

	return bench->awaiting && by_answer < by_clock ? by_answer : by_clock;
}

/* Runs up to a cycle, for one slice at most; stops when the output changes, because that moves the target. */
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

static void reset_board(struct bench *bench)
{
	reset = 0;
	edges_clear(&bench->edges);
	bench->awaiting = 0;
	machine_reset(&bench->machine);
	bench->start_ns = now_ns() - (int64_t)(bench->machine.avr->cycle * 1000 / CYCLES_PER_US);
}

static void poll_inputs(struct bench *bench, int may_wait)
{
	struct pollfd polled[] = {
		{ .fd = bench->listener, .events = POLLIN },
		{ .fd = bench->client, .events = POLLIN },
		{ .fd = bench->terminal, .events = POLLIN },
	};
	struct timespec wait = { .tv_nsec = may_wait ? SLICE_NS : 0 };

	if (ppoll(polled, 3, &wait, NULL) <= 0)
		return;
	if (polled[1].revents)
		read_pins(bench);
	if (polled[0].revents)
		accept_board(bench);
	if (polled[2].revents)
		read_terminal(bench);
}

static int run_until_signal(struct bench *bench)
{
	while (!ended && !bench->broken) {
		int64_t now = now_ns();
		avr_cycle_count_t end = target_cycle(bench, now);
		int ahead = bench->machine.avr->cycle >= end;
		int64_t behind_ns = now - bench->start_ns -
				    (int64_t)(bench->machine.avr->cycle * 1000 / CYCLES_PER_US);

		if (behind_ns > bench->max_behind_ns)
			bench->max_behind_ns = behind_ns;
		if (!ahead)
			run(bench, end);
		poll_inputs(bench, ahead);
		write_terminal(bench);
		if (reset)
			reset_board(bench);
	}
	return bench->broken ? BROKEN : 0;
}

static void remove_files(const struct bench *bench)
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
	char line[COUNTERS_SIZE];
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
	status = run_until_signal(&bench);
	remove_files(&bench);
	fwrite(line, counters(&bench, line, sizeof(line)), 1, stdout);
	return status;
}
