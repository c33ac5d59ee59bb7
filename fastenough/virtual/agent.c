// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bench's hand in the guest: runs commands that come over a virtio port, several at a time.
 *
 * Frames, both ways: struct frame, then its bytes.  Each command lives in a cgroup of its own, so that
 * nothing it starts outlives it; when the bench goes away, every command ends.  It is process 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMANDS 16
#define ARGUMENTS 256
#define CHUNK 65536
#define GROUPS "/sys/fs/cgroup"
#define PATH_SIZE 160

enum kind {
	INPUT,   /* bytes for standard input, before START */
	START,   /* scratch NUL, then each argument NUL; a scratch directory is made first and removed last */
	SIGNAL,  /* u32 number, to the command itself */
	KILL,    /* everything the command has started, too */
	STARTED, /* u32 process id */
	OUTPUT,
	ERRORS,
	EXITED,  /* u32 status, 128 + signal where one ended it; the last frame of its id */
	RESET,   /* a bench begins: what another left is ended, then this is said back */
};

struct frame {
	uint32_t id, kind, length;
};

struct command {
	uint32_t id; /* 0: free place */
	pid_t pid;
	int input, output, errors;
	int status; /* -1: not ended */
	char scratch[128];
};

static struct command commands[COMMANDS];
static int port;

static void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return;
	if (write(file, text, strlen(text)) < 0)
		perror(path);
	close(file);
}

static void close_end(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

/* Frames */

static int wait_for_port(short event)
{
	struct pollfd polled = { port, event, 0 };

	poll(&polled, 1, -1);
	return polled.revents & POLLHUP ? -1 : 0;
}

/* What cannot be sent because the bench is gone is dropped: poll will say so soon. */
static void send_bytes(const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length && wait_for_port(POLLOUT) == 0) {
		ssize_t sent = write(port, at, length);

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (sent > 0) {
			at += sent;
			length -= sent;
		}
	}
}

static void send_frame(uint32_t id, enum kind kind, const void *bytes, uint32_t length)
{
	struct frame frame = { id, kind, length };

	send_bytes(&frame, sizeof(frame));
	send_bytes(bytes, length);
}

static void send_number(uint32_t id, enum kind kind, uint32_t number)
{
	send_frame(id, kind, &number, sizeof(number));
}

static int receive(void *bytes, size_t length)
{
	char *at = bytes;

	while (length) {
		ssize_t got = read(port, at, length);

		if (got == 0 || (got < 0 && errno == EAGAIN && wait_for_port(POLLIN)))
			return -1;
		if (got > 0) {
			at += got;
			length -= got;
		}
	}
	return 0;
}

/* Commands */

static struct command *find(uint32_t id)
{
	for (int i = 0; i < COMMANDS; i++)
		if (commands[i].id == id)
			return &commands[i];
	return NULL;
}

static struct command *find_or_make(uint32_t id)
{
	struct command *command = find(id);

	if (!command && (command = find(0)))
		*command = (struct command){ .id = id, .input = memfd_create("input", MFD_CLOEXEC), .output = -1,
					     .errors = -1, .status = -1 };
	return command;
}

static void group_path(char path[PATH_SIZE], const struct command *command, const char *file)
{
	snprintf(path, PATH_SIZE, GROUPS "/bench-%u%s", command->id, file);
}

static void kill_group(const struct command *command)
{
	char path[PATH_SIZE];

	group_path(path, command, "/cgroup.kill");
	write_file(path, "1");
}

static void become(const struct command *command, char **arguments, int output, int errors)
{
	char path[PATH_SIZE];
	sigset_t none;

	group_path(path, command, "/cgroup.procs");
	write_file(path, "0");
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	lseek(command->input, 0, SEEK_SET);
	dup2(command->input, 0);
	dup2(output, 1);
	dup2(errors, 2);
	execvp(arguments[0], arguments);
	dprintf(2, "%s: %s\n", arguments[0], strerror(errno));
	_exit(127);
}

static void launch(struct command *command, char **arguments)
{
	int output[2], errors[2];
	char group[PATH_SIZE];

	group_path(group, command, "");
	mkdir(group, 0755);
	if (command->scratch[0])
		mkdir(command->scratch, 0700);
	if (pipe2(output, O_CLOEXEC) || pipe2(errors, O_CLOEXEC)) {
		command->status = 126;
		return;
	}
	command->pid = fork();
	if (command->pid == 0)
		become(command, arguments, output[1], errors[1]);
	close_end(&command->input);
	close(output[1]);
	close(errors[1]);
	command->output = output[0];
	command->errors = errors[0];
	send_number(command->id, STARTED, command->pid);
}

static void start(struct command *command, char *text, size_t length)
{
	char *arguments[ARGUMENTS + 1], *at = text + strlen(text) + 1;
	int count = 0;

	for (; at < text + length && count < ARGUMENTS; at += strlen(at) + 1)
		arguments[count++] = at;
	arguments[count] = NULL;
	if (count == 0 || at < text + length || strlen(text) >= sizeof(command->scratch)) {
		command->status = 126;
		return;
	}
	strcpy(command->scratch, text);
	launch(command, arguments);
}

static void pass_on(struct command *command, int *end, enum kind kind)
{
	static char bytes[CHUNK];
	ssize_t got = read(*end, bytes, sizeof(bytes));

	if (got > 0)
		send_frame(command->id, kind, bytes, got);
	else
		close_end(end);
}

static void remove_scratch(const char *scratch)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/busybox", "rm", "-rf", scratch, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* The command has ended; once its children are dead, what they wrote last is passed on and the rest cleared away. */
static void finish(struct command *command)
{
	char group[PATH_SIZE];

	group_path(group, command, "");
	if (rmdir(group) && errno == EBUSY)
		return;
	while (command->output >= 0)
		pass_on(command, &command->output, OUTPUT);
	while (command->errors >= 0)
		pass_on(command, &command->errors, ERRORS);
	close_end(&command->input);
	if (command->scratch[0])
		remove_scratch(command->scratch);
	send_number(command->id, EXITED, command->status);
	command->id = 0;
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < COMMANDS; i++)
			if (commands[i].id && commands[i].pid == pid && commands[i].status < 0) {
				commands[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
				kill_group(&commands[i]);
			}
}

/* How many commands have ended while something they started is still dying. */
static int finish_ended(void)
{
	int dying = 0;

	for (int i = 0; i < COMMANDS; i++)
		if (commands[i].id && commands[i].status >= 0) {
			finish(&commands[i]);
			dying += commands[i].id != 0;
		}
	return dying;
}

/* A bench is gone: whatever it left running ends too. */
static void end_all(void)
{
	for (int i = 0; i < COMMANDS; i++)
		while (commands[i].id) {
			if (!commands[i].pid)
				commands[i].status = 126;
			kill_group(&commands[i]);
			usleep(10000);
			reap();
			finish_ended();
		}
}

/* Turns */

static void obey_for_command(const struct frame *frame, char *bytes)
{
	bool begins = frame->kind == INPUT || frame->kind == START;
	struct command *command = begins ? find_or_make(frame->id) : find(frame->id);

	if (!command) {
		if (begins)
			send_number(frame->id, EXITED, 126);
		return; /* else it has ended meanwhile */
	}
	if (frame->kind == START)
		start(command, bytes, frame->length);
	else if (frame->kind == INPUT && write(command->input, bytes, frame->length) < 0)
		command->status = 126;
	else if (frame->kind == SIGNAL && command->status < 0)
		kill(command->pid, *(uint32_t *)bytes);
	else if (frame->kind == KILL)
		kill_group(command);
}

static void obey(const struct frame *frame, char *bytes)
{
	if (frame->kind != RESET) {
		obey_for_command(frame, bytes);
		return;
	}
	end_all();
	send_frame(0, RESET, NULL, 0);
}

static int obey_next(void)
{
	static char bytes[CHUNK + 1];
	struct frame frame;

	if (receive(&frame, sizeof(frame)) || frame.length > CHUNK || receive(bytes, frame.length))
		return -1;
	bytes[frame.length] = '\0';
	obey(&frame, bytes);
	return 0;
}

static void watch(struct pollfd *polled, int children)
{
	polled[0] = (struct pollfd){ port, POLLIN, 0 };
	polled[1] = (struct pollfd){ children, POLLIN, 0 };
	for (int i = 0; i < COMMANDS; i++) {
		polled[2 + 2 * i] = (struct pollfd){ commands[i].id ? commands[i].output : -1, POLLIN, 0 };
		polled[3 + 2 * i] = (struct pollfd){ commands[i].id ? commands[i].errors : -1, POLLIN, 0 };
	}
}

/* What the bench asks, what commands say, who has ended; -1 when the bench is gone. */
static int turn(int children, int timeout_ms)
{
	struct pollfd polled[2 + 2 * COMMANDS];
	struct signalfd_siginfo ignored;

	watch(polled, children);
	if (poll(polled, 2 + 2 * COMMANDS, timeout_ms) < 0)
		return 0;
	for (int i = 0; i < COMMANDS; i++) {
		if (polled[2 + 2 * i].revents)
			pass_on(&commands[i], &commands[i].output, OUTPUT);
		if (polled[3 + 2 * i].revents)
			pass_on(&commands[i], &commands[i].errors, ERRORS);
	}
	if (polled[1].revents && read(children, &ignored, sizeof(ignored)) > 0)
		reap();
	if (polled[0].revents & POLLHUP)
		return -1;
	return polled[0].revents & POLLIN ? obey_next() : 0;
}

static void serve(int children)
{
	int dying = 0;

	while (turn(children, dying ? 10 : -1) == 0)
		dying = finish_ended();
	end_all();
}

int main(int argc, char **argv)
{
	sigset_t child;
	int children;

	if (argc != 2)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	for (;;) {
		port = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (port >= 0)
			serve(children);
		close_end(&port);
		usleep(100000);
	}
}
