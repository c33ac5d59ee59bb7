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

/* Its place is free. */
static void forget(struct command *command)
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

static struct command *find_or_make(uint32_t id)
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
		forget(command);
}

const char *command_input(uint32_t id, const char *bytes, size_t length)
{
	struct command *command = find_or_make(id);

	if (!command)
		return NULL; /* its START will be refused */
	if (command->guard)
		return "input for a command that has already started";
	while (length && command->input >= 0) {
		ssize_t written = write(command->input, bytes, length);

		if (written < 0) {
			close_end(&command->input); /* its START will be refused */
			break;
		}
		bytes += written;
		length -= written;
	}
	return NULL;
}

/* In the child: nothing of the other commands' stays open, or their ends would not be seen. */
_Noreturn static void become_guard(const struct command *command, struct errand *errand, int lifeline)
{
	for (int i = 0; i < COMMANDS; i++) {
		struct command other = commands[i];

		if (&commands[i] == command)
			other.input = -1;
		if (other.id)
			close_ends(&other);
	}
	errand->input = command->input;
	errand->lifeline = lifeline;
	guard(errand);
}

static void launch(struct port *port, struct command *command, struct errand *errand)
{
	int output[2] = { -1, -1 }, errors[2] = { -1, -1 }, lifeline[2] = { -1, -1 };

	if (command->input >= 0 && pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0 &&
	    pipe2(lifeline, O_CLOEXEC | O_NONBLOCK) == 0) {
		command->output = output[0];
		command->errors = errors[0];
		command->lifeline = lifeline[1];
		errand->output = output[1];
		errand->errors = errors[1];
		command->guard = fork();
		if (command->guard == 0)
			become_guard(command, errand, lifeline[0]);
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

/* Splits scratch and arguments; returns why they are no proper ones. */
static const char *parse(char *content, size_t length, struct errand *errand)
{
	char *at, *end = content + length;
	int count = 0;

	if (length <= sizeof(uint32_t) || end[-1] != '\0')
		return "a command is not terminated by a zero byte";
	errand->limit_ms = number_at(content);
	errand->scratch = content + sizeof(uint32_t);
	if (errand->scratch[0] && (!is_scratch(errand->scratch) || strlen(errand->scratch) >= SCRATCH_SIZE))
		return "the scratch directory has an invalid name";
	for (at = strchr(errand->scratch, '\0') + 1; at < end && count < ARGUMENTS; at += strlen(at) + 1)
		errand->arguments[count++] = at;
	errand->arguments[count] = NULL;
	return count == 0 || errand->arguments[0][0] == '\0' ? "a command has no arguments"
	     : at < end					     ? "a command has too many arguments"
							     : NULL;
}

const char *command_start(struct port *port, uint32_t id, char *content, size_t length)
{
	char *arguments[ARGUMENTS + 1];
	struct errand errand = { .arguments = arguments, .own_name = commands_own_name };
	const char *fault = parse(content, length, &errand);
	struct command *command = find_or_make(id);

	if (fault)
		return fault;
	if (!command) {
		refuse_start(port, NULL, id, "too many commands at once\n");
		return NULL;
	}
	if (command->guard)
		return "the command has already started";
	strcpy(command->scratch, errand.scratch);
	launch(port, command, &errand);
	return NULL;
}

static void tell(const struct command *command, unsigned char number)
{
	if (command->guard && write(command->lifeline, &number, 1) < 0 && errno != EAGAIN)
		return; /* it is ending */
}

const char *command_signal(uint32_t id, const char *content, size_t length)
{
	struct command *command = find(id);
	uint32_t number = length == sizeof(number) ? number_at(content) : 0;

	if (number < 1 || number > 64)
		return "no such signal";
	if (command)
		tell(command, number);
	return NULL;
}

void command_kill(uint32_t id)
{
	struct command *command = find(id);

	if (command)
		tell(command, GUARD_KILL);
}

void commands_watch(struct pollfd polled[POLLED])
{
	for (int i = 0; i < COMMANDS; i++) {
		bool used = commands[i].id != 0;

		polled[2 * i] = (struct pollfd){ used ? commands[i].output : -1, POLLIN, 0 };
		polled[2 * i + 1] = (struct pollfd){ used ? commands[i].errors : -1, POLLIN, 0 };
	}
}

/* Whether there may be more. */
static bool pass_on(struct port *port, uint32_t id, int *end, enum kind kind)
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
			pass_on(port, commands[i].id, &commands[i].output, OUTPUT);
		if (polled[2 * i + 1].revents)
			pass_on(port, commands[i].id, &commands[i].errors, ERRORS);
	}
}

/* Its guard has ended: what the tree wrote last is passed on, and the place is free. */
static void finish(struct port *port, struct command *command, uint32_t status)
{
	while (pass_on(port, command->id, &command->output, OUTPUT))
		;
	while (pass_on(port, command->id, &command->errors, ERRORS))
		;
	port_send_number(port, command->id, EXITED, status);
	forget(command);
}

static int guards(pid_t pids[COMMANDS])
{
	int count = 0;

	for (int i = 0; i < COMMANDS; i++)
		if (commands[i].id && commands[i].guard)
			pids[count++] = commands[i].guard;
	return count;
}

/* Somebody has killed a guard: its tree is the agent's now, and ends. */
static void end_strays(struct command *command)
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
					end_strays(&commands[i]);
				finish(port, &commands[i], WIFEXITED(status) ? WEXITSTATUS(status)
									     : 128 + WTERMSIG(status));
			}
}

void commands_end(struct port *port)
{
	pid_t pids[COMMANDS];

	for (int i = 0; i < COMMANDS; i++) {
		if (commands[i].id && !commands[i].guard)
			forget(&commands[i]);
		if (commands[i].id)
			tell(&commands[i], GUARD_KILL);
	}
	while (guards(pids) > 0) {
		usleep(RETRY_US);
		commands_reap(port);
	}
}
