/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "guard.h"
#include "tree.h"

#define ARGUMENTS 1024
#define CHUNK 65536
#define SCRATCH_SIZE 256
#define CANNOT_START 126
#define RETRY_US 10000

struct command {
	uint32_t id; /* 0: free place */
	pid_t guard; /* 0: not started */
	int input, output, errors, lifeline;
	char scratch[SCRATCH_SIZE];
};

static struct command commands[COMMANDS];
const char *commands_own_name;

static void close_end(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

static void close_ends(struct command *command)
{
	close_end(&command->input);
	close_end(&command->output);
	close_end(&command->errors);
	close_end(&command->lifeline);
}

static void free_command(struct command *command)
{
	close_ends(command);
	command->id = 0;
}

static struct command *find(uint32_t id)
{
	for (int i = 0; i < COMMANDS; i++)
		if (commands[i].id == id)
			return &commands[i];
	return NULL;
}

static struct command *find_or_create(uint32_t id)
{
	struct command *command = find(id);

	if (!command && (command = find(0)))
		*command = (struct command){ .id = id, .input = memfd_create("input", MFD_CLOEXEC), .output = -1,
					     .errors = -1, .lifeline = -1 };
	return command;
}

static void refuse_start(struct port *port, struct command *command, uint32_t id, const char *why)
{
	port_send(port, id, ERRORS, why, strlen(why));
	port_send_number(port, id, EXITED, CANNOT_START);
	if (command)
		free_command(command);
}

const char *command_input(uint32_t id, const char *bytes, size_t length)
{
	struct command *command = find_or_create(id);

	if (!command)
		return NULL; /* START will be refused */
	if (command->guard)
		return "input for a command that has already started";
	while (length && command->input >= 0) {
		ssize_t written = write(command->input, bytes, length);

		if (written < 0) {
			close_end(&command->input); /* START will be refused */
			break;
		}
		bytes += written;
		length -= written;
	}
	return NULL;
}

/* In the child: closes the pipes of all other commands, which would otherwise stay open after these end. */
_Noreturn static void become_guard(const struct command *command, struct launch_request *launch_request, int lifeline)
{
	for (int i = 0; i < COMMANDS; i++) {
		struct command other = commands[i];

		if (&commands[i] == command)
			other.input = -1;
		if (other.id)
			close_ends(&other);
	}
	launch_request->input = command->input;
	launch_request->lifeline = lifeline;
	guard(launch_request);
}

static void launch(struct port *port, struct command *command, struct launch_request *launch_request)
{
	int output[2] = { -1, -1 }, errors[2] = { -1, -1 }, lifeline[2] = { -1, -1 };

	if (command->input >= 0 && pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0 &&
	    pipe2(lifeline, O_CLOEXEC | O_NONBLOCK) == 0) {
		command->output = output[0];
		command->errors = errors[0];
		command->lifeline = lifeline[1];
		launch_request->output = output[1];
		launch_request->errors = errors[1];
		command->guard = fork();
		if (command->guard == 0)
			become_guard(command, launch_request, lifeline[0]);
	}
	close_end(&output[1]);
	close_end(&errors[1]);
	close_end(&lifeline[0]);
	close_end(&command->input);
	if (command->guard <= 0) {
		command->guard = 0;
		refuse_start(port, command, command->id, "the board cannot start another process\n");
		return;
	}
	fcntl(command->output, F_SETFL, O_NONBLOCK);
	fcntl(command->errors, F_SETFL, O_NONBLOCK);
	port_send_number(port, command->id, STARTED, command->guard);
}

/* Parses scratch directory and arguments; returns why they are invalid, or NULL. */
static const char *parse(char *content, size_t length, struct launch_request *launch_request)
{
	char *at, *end = content + length;
	int count = 0;

	if (length <= sizeof(uint32_t) || end[-1] != '\0')
		return "a command is not terminated by a zero byte";
	launch_request->limit_ms = number_at(content);
	launch_request->scratch = content + sizeof(uint32_t);
	if (launch_request->scratch[0] && (!is_scratch(launch_request->scratch) || strlen(launch_request->scratch) >= SCRATCH_SIZE))
		return "the scratch directory has an invalid name";
	for (at = strchr(launch_request->scratch, '\0') + 1; at < end && count < ARGUMENTS; at += strlen(at) + 1)
		launch_request->arguments[count++] = at;
	launch_request->arguments[count] = NULL;
	return count == 0 || launch_request->arguments[0][0] == '\0' ? "a command has no arguments"
	     : at < end					     ? "a command has too many arguments"
							     : NULL;
}

const char *command_start(struct port *port, uint32_t id, char *content, size_t length)
{
	char *arguments[ARGUMENTS + 1];
	struct launch_request launch_request = { .arguments = arguments, .own_name = commands_own_name };
	const char *fault = parse(content, length, &launch_request);
	struct command *command = find_or_create(id);

	if (fault)
		return fault;
	if (!command) {
		refuse_start(port, NULL, id, "too many commands at once\n");
		return NULL;
	}
	if (command->guard)
		return "the command has already started";
	strcpy(command->scratch, launch_request.scratch);
	launch(port, command, &launch_request);
	return NULL;
}

static void send_to_guard(const struct command *command, unsigned char number)
{
	if (command->guard && write(command->lifeline, &number, 1) < 0 && errno != EAGAIN)
		return; /* the guard is ending */
}

const char *command_signal(uint32_t id, const char *content, size_t length)
{
	struct command *command = find(id);
	uint32_t number = length == sizeof(number) ? number_at(content) : 0;

	if (number < 1 || number > 64)
		return "no such signal";
	if (command)
		send_to_guard(command, number);
	return NULL;
}

void command_kill(uint32_t id)
{
	struct command *command = find(id);

	if (command)
		send_to_guard(command, GUARD_KILL);
}

void commands_watch(struct pollfd polled[POLLED])
{
	for (int i = 0; i < COMMANDS; i++) {
		bool used = commands[i].id != 0;

		polled[2 * i] = (struct pollfd){ used ? commands[i].output : -1, POLLIN, 0 };
		polled[2 * i + 1] = (struct pollfd){ used ? commands[i].errors : -1, POLLIN, 0 };
	}
}

/* Forwards output of a command; true if there may be more. */
static bool forward_output(struct port *port, uint32_t id, int *end, enum kind kind)
{
	char bytes[CHUNK];
	ssize_t got = *end < 0 ? 0 : read(*end, bytes, sizeof(bytes));

	if (got > 0)
		port_send(port, id, kind, bytes, got);
	else if (got == 0 || errno != EAGAIN)
		close_end(end);
	return got > 0;
}

void commands_pass_on(struct port *port, const struct pollfd polled[POLLED])
{
	for (int i = 0; i < COMMANDS; i++) {
		if (polled[2 * i].revents)
			forward_output(port, commands[i].id, &commands[i].output, OUTPUT);
		if (polled[2 * i + 1].revents)
			forward_output(port, commands[i].id, &commands[i].errors, ERRORS);
	}
}

/* The guard has ended: forwards the last output, reports the exit and frees the command. */
static void finish(struct port *port, struct command *command, uint32_t status)
{
	while (forward_output(port, command->id, &command->output, OUTPUT))
		;
	while (forward_output(port, command->id, &command->errors, ERRORS))
		;
	port_send_number(port, command->id, EXITED, status);
	free_command(command);
}

static int guards(pid_t pids[COMMANDS])
{
	int count = 0;

	for (int i = 0; i < COMMANDS; i++)
		if (commands[i].id && commands[i].guard)
			pids[count++] = commands[i].guard;
	return count;
}

/* A guard was killed: its process tree now belongs to the agent, which ends it. */
static void end_orphans(struct command *command)
{
	pid_t spared[COMMANDS];
	int count;

	command->guard = 0;
	count = guards(spared);
	while (kill_below(spared, count))
		usleep(RETRY_US);
	if (command->scratch[0])
		remove_scratch(command->scratch);
}

void commands_reap(struct port *port)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < COMMANDS; i++)
			if (commands[i].id && commands[i].guard == pid) {
				if (WIFSIGNALED(status))
					end_orphans(&commands[i]);
				finish(port, &commands[i], WIFEXITED(status) ? WEXITSTATUS(status)
									     : 128 + WTERMSIG(status));
			}
}

void commands_end(struct port *port)
{
	pid_t pids[COMMANDS];

	for (int i = 0; i < COMMANDS; i++) {
		if (commands[i].id && !commands[i].guard)
			free_command(&commands[i]);
		if (commands[i].id)
			send_to_guard(&commands[i], GUARD_KILL);
	}
	while (guards(pids) > 0) {
		usleep(RETRY_US);
		commands_reap(port);
	}
}
