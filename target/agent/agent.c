/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent.h"
#include "command.h"
#include "guard.h"
#include "tree.h"

#define PROBE "fastenough-probe"
#define REOPEN_US 100000

static struct port port;

/* Starts a session: ends all commands of the previous bench, and replies with version, process and user. */
static const char *reset(const char *content, size_t length)
{
	const uint32_t numbers[] = { htole32(AGENT_VERSION), htole32((uint32_t)getpid()), htole32((uint32_t)geteuid()) };
	char answer[NONCE_SIZE + sizeof(numbers)];

	if (length != sizeof(uint32_t) + NONCE_SIZE)
		return "the first frame has a wrong length";
	commands_end(&port);
	port.patience_ms = number_at(content);
	memcpy(answer, content + sizeof(uint32_t), NONCE_SIZE);
	memcpy(answer + NONCE_SIZE, numbers, sizeof(numbers));
	port_send(&port, 0, RESET, answer, sizeof(answer));
	return NULL;
}

/* Returns why the frame is invalid, or NULL. */
static const char *handle_frame(const struct frame *frame, char *content)
{
	if (frame->kind == PING) {
		port_send(&port, frame->id, PING, content, frame->length);
		return NULL;
	}
	if (frame->kind == RESET)
		return reset(content, frame->length);
	if (frame->id == 0)
		return "a command has no number";
	if (frame->kind == INPUT)
		return command_input(frame->id, content, frame->length);
	if (frame->kind == START)
		return command_start(&port, frame->id, content, frame->length);
	if (frame->kind == SIGNAL)
		return command_signal(frame->id, content, frame->length);
	command_kill(frame->id);
	return NULL;
}

static void handle_frames(void)
{
	char content[FRAME_MAX + 1];
	struct frame frame;

	while (port_next(&port, &frame, content)) {
		const char *fault = handle_frame(&frame, content);

		if (fault)
			port_refuse(&port, fault);
	}
}

static void read_signals(int signals)
{
	struct signalfd_siginfo signal_info;

	while (read(signals, &signal_info, sizeof(signal_info)) == sizeof(signal_info))
		if (signal_info.ssi_signo != SIGCHLD)
			port.gone = true;
	commands_reap(&port);
}

/* Handles frames from the bench, output of commands, and ended commands. */
static void serve_once(int signals)
{
	struct pollfd polled[2 + POLLED] = { { port.in, POLLIN, 0 }, { signals, POLLIN, 0 } };

	commands_watch(polled + 2);
	if (poll(polled, 2 + POLLED, port_left_ms(&port)) < 0)
		return;
	commands_pass_on(&port, polled + 2);
	if (polled[1].revents)
		read_signals(signals);
	if (polled[0].revents & POLLIN)
		port_fill(&port);
	else if (polled[0].revents || port_left_ms(&port) == 0)
		port.gone = true;
	handle_frames();
}

static void serve(int in, int out, int signals)
{
	port_open(&port, in, out);
	while (!port.gone)
		serve_once(signals);
	commands_end(&port);
}

/* Deletes the file that was copied to the board at once: the agent can be started again through /proc/PID/exe, and nothing
 * remains on a disk, however the agent ends. */
static void remove_own_file(const char *directory)
{
	char path[256];

	if (!is_scratch(directory) || snprintf(path, sizeof(path), "%s/" PROBE, directory) >= (int)sizeof(path))
		return;
	unlink(path);
	rmdir(directory);
}

/* Adds the directories of servers and administration tools, which the PATH of an ordinary user omits. */
static void widen_path(void)
{
	const char *path = getenv("PATH");
	char wide[4096];

	snprintf(wide, sizeof(wide), "%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "/usr/local/bin:/usr/bin:/bin");
	setenv("PATH", wide, 1);
}

_Noreturn static void serve_device(const char *path, int signals)
{
	for (;;) {
		int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

		if (file >= 0) {
			serve(file, file, signals);
			close(file);
		}
		usleep(REOPEN_US);
	}
}

int agent_main(int argc, char **argv, const char *own_name)
{
	bool device = argc == 3 && strcmp(argv[1], "device") == 0;
	int signals;

	if (argc == 2 && strcmp(argv[1], "check") == 0) {
		printf("fastenough-agent %d\n", AGENT_VERSION);
		return fflush(stdout) ? 1 : 0;
	}
	if (!device && !((argc == 2 || argc == 3) && strcmp(argv[1], "stdio") == 0)) {
		fprintf(stderr, "fastenough-agent: started by the bench as: agent stdio [DIRECTORY] | device PATH | check\n");
		return 2;
	}
	commands_own_name = own_name;
	signal(SIGPIPE, SIG_IGN);
	signals = open_signal_file();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	widen_path();
	if (chdir("/") < 0)
		return 1;
	if (device)
		serve_device(argv[2], signals);
	if (argc == 3)
		remove_own_file(argv[2]);
	sweep_scratch();
	serve(STDIN_FILENO, STDOUT_FILENO, signals);
	return 0;
}
