/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot_clock.h"

#define FILE_NUMBER 3
#define MAX_OPEN 1024
#define NOT_STARTED 127
#define NS_PER_MS INT64_C(1000000)
#define POLL_MS 50

/* An anonymous file with this content, open at its beginning; -1 with errno if there is none. */
static int memory_file(const char *content, size_t size)
{
	int file = memfd_create("fastenough", MFD_CLOEXEC);

	if (file >= 0 && (write(file, content, size) != (ssize_t)size || lseek(file, 0, SEEK_SET))) {
		close(file);
		return -1;
	}
	return file;
}

/* Keeps standard input, output and the file open; closes everything else, such as the connection to the server. */
static void exec_program(const struct child *child, int input, int output, int file)
{
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (file == FILE_NUMBER)
		fcntl(file, F_SETFD, 0);
	else if (file >= 0)
		dup2(file, FILE_NUMBER);
	for (int number = file < 0 ? FILE_NUMBER : FILE_NUMBER + 1; number < MAX_OPEN; number++)
		close(number);
	execvp(child->words[0], (char *const *)child->words);
	dprintf(STDOUT_FILENO, "%s: %s\n", child->words[0], strerror(errno));
	_exit(NOT_STARTED);
}

struct output {
	char *line;
	size_t room, held;
	bool line_is_complete;
	struct child_rest *rest;
	bool overflow;
};

static void store_rest(struct output *output, const char *bytes, size_t size)
{
	struct child_rest *rest = output->rest;

	output->overflow |= rest && size > rest->room - rest->size;
	if (!rest || output->overflow)
		return;
	memcpy(rest->bytes + rest->size, bytes, size);
	rest->size += size;
}

static void store(struct output *output, const char *bytes, size_t size)
{
	const char *feed = output->line_is_complete ? NULL : memchr(bytes, '\n', size);
	size_t of_line = output->line_is_complete ? 0 : feed ? (size_t)(feed - bytes) : size;
	size_t left = output->room - 1 - output->held, fitting = left < of_line ? left : of_line;

	memcpy(output->line + output->held, bytes, fitting);
	output->held += fitting;
	output->line[output->held] = '\0';
	if (feed)
		of_line++;
	output->line_is_complete |= feed != NULL;
	if (size > of_line)
		store_rest(output, bytes + of_line, size - of_line);
}

/* Reads until the program and its descendants have closed their output; false if the time limit expires first. */
static bool read_output(int file, int64_t end_ns, struct output *output)
{
	struct pollfd event = {.fd = file, .events = POLLIN};
	char block[4096];

	while (boot_ns() < end_ns) {
		ssize_t size;

		if (poll(&event, 1, POLL_MS) <= 0)
			continue;
		size = read(file, block, sizeof(block));
		if (size <= 0)
			return true;
		store(output, block, (size_t)size);
	}
	return false;
}

/* A program may close its output long before it ends. */
static int wait_until(pid_t process, int64_t end_ns)
{
	struct timespec pause = {0, POLL_MS * NS_PER_MS / 10};
	int status;

	while (!waitpid(process, &status, WNOHANG)) {
		if (boot_ns() >= end_ns) {
			kill(-process, SIGKILL);
			waitpid(process, &status, 0);
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) != NOT_STARTED ? WEXITSTATUS(status) : -1;
}

static int run(const struct child *child, int input, int file, char *line, size_t room)
{
	struct output output = {.line = line, .room = room, .rest = child->rest};
	int64_t end_ns = boot_ns() + child->limit_ns;
	int ends[2], status;
	bool in_time = true;
	pid_t process;

	if (pipe(ends))
		return -1;
	process = fork();
	if (!process)
		exec_program(child, input, ends[1], file);
	close(ends[1]);
	if (process > 0)
		setpgid(process, process);
	if (process > 0 && !read_output(ends[0], end_ns, &output)) {
		kill(-process, SIGKILL);
		in_time = false;
	}
	close(ends[0]);
	status = process > 0 ? wait_until(process, end_ns) : -1;
	line[strcspn(line, "\r")] = '\0';
	if (output.overflow)
		child->rest->size = 0;
	return in_time ? status : -1;
}

int child_run(const struct child *child, char *line, size_t room)
{
	int input = memory_file(child->input, child->input_size);
	int file = child->file ? memory_file(child->file, child->file_size) : -1;
	int status = -1;

	*line = '\0';
	if (child->rest)
		child->rest->size = 0;
	if (input >= 0 && (file >= 0 || !child->file))
		status = run(child, input, file, line, room);
	if (input >= 0)
		close(input);
	if (file >= 0)
		close(file);
	return status;
}
