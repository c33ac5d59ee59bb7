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
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "paced.h"

#define GUARD_NS 150000
#define SLICE_NS 20000
#define SLICE_CYCLES 160
#define BROKEN 4   /* exit status */

static volatile sig_atomic_t ended, reset;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		reset = 1;
	else
		ended = 1;
}

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

avr_cycle_count_t cycles_in(int64_t ns)
{
	return ns > 0 ? (avr_cycle_count_t)ns * CYCLES_PER_US / 1000 : 0;
}

void fail(struct bench *bench, const char *why)
{
	fprintf(stderr, "%s\n", why);
	bench->broken = 1;
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
