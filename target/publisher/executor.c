/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough-executor: carries out signed orders on a board; see docs/fleet-boards.md.
 *
 * The publisher starts it as its executor: it passes the order to the service, and prints the answer.  The service, which
 * has the right to change the board, trusts nobody: it verifies the order again, with its own list of signers and its own
 * record of the newest order, before it starts the program of the actions.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "boot_clock.h"
#include "child.h"
#include "identity.h"
#include "json_scan.h"
#include "log.h"
#include "order.h"
#include "orders.h"

#define CLIENT_NS (18 * NS_PER_S)  /* before the publisher ends this program */
#define RECEIVE_NS (2 * NS_PER_S)  /* the order comes at once */
#define ACTION_NS (14 * NS_PER_S)  /* the answer reaches the publisher in time, with the time to verify */
#define RECOVER_NS (60 * NS_PER_S)
#define NS_PER_MS INT64_C(1000000)
#define WORD 128

enum { SERVE, SOCKET, SIGNERS, MACHINE_ID, STATE, ACTIONS, HELP, VERSION, OPTIONS };

struct settings {
	bool serve;
	const char *socket, *signers, *machine_id, *state, *actions;
};

static const struct option known[OPTIONS + 1] = {
	[SERVE] = {"serve", no_argument, NULL, SERVE},
	[SOCKET] = {"socket", required_argument, NULL, SOCKET},
	[SIGNERS] = {"signers", required_argument, NULL, SIGNERS},
	[MACHINE_ID] = {"machine-id", required_argument, NULL, MACHINE_ID},
	[STATE] = {"state", required_argument, NULL, STATE},
	[ACTIONS] = {"actions", required_argument, NULL, ACTIONS},
	[HELP] = {"help", no_argument, NULL, HELP},
	[VERSION] = {"version", no_argument, NULL, VERSION},
};

static void print_help(void)
{
	puts("Usage: fastenough-executor [--socket PATH] ACTION VALUE <ORDER, or fastenough-executor --serve [options]\n"
	     "Carries out signed orders on a board: passes one to the service, or is the service (--serve).\n\n"
	     "Options:\n"
	     "      --serve            verify orders and carry them out, as the user who may change the board\n"
	     "      --socket           socket of the service (/run/fastenough-executor/socket)\n"
	     "      --signers          allowed signers of orders, see ssh-keygen(1) (/etc/fastenough/signers)\n"
	     "      --machine-id       file with the board's machine ID (/etc/machine-id)\n"
	     "      --state            file with the time of the newest order (/var/lib/fastenough-executor/last-order)\n"
	     "      --actions          program of the actions (/usr/lib/fastenough-publisher/carry-out)\n"
	     "      --help             print this text\n"
	     "      --version          print the version");
	exit(0);
}

static void take(struct settings *settings, int option, const char *value)
{
	const char **words[OPTIONS] = {
		[SOCKET] = &settings->socket, [SIGNERS] = &settings->signers, [MACHINE_ID] = &settings->machine_id,
		[STATE] = &settings->state, [ACTIONS] = &settings->actions,
	};

	if (option == HELP)
		print_help();
	if (option == VERSION) {
		puts("fastenough-executor " PUBLISHER_VERSION);
		exit(0);
	}
	if (option == SERVE)
		settings->serve = true;
	else
		*words[option] = value;
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		bad_input("--socket: %.120s is not a path of 1 to %zu characters", path, sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	return address;
}

/* Reads to the end of the input, or until `room` is full; -1 if the time expires first. */
static ssize_t read_all(int input, char *text, size_t room, int64_t limit_ns)
{
	int64_t end_ns = boot_ns() + limit_ns, left_ns;
	struct pollfd event = {.fd = input, .events = POLLIN};
	size_t held = 0;

	while (held < room) {
		ssize_t size;

		left_ns = end_ns - boot_ns();
		if (left_ns <= 0 || poll(&event, 1, (int)(left_ns / NS_PER_MS) + 1) < 0)
			return -1;
		if (!event.revents)
			continue;
		size = read(input, text + held, room - held);
		if (size < 0)
			return -1;
		if (!size)
			break;
		held += (size_t)size;
	}
	return (ssize_t)held;
}

static bool send_all(int output, const char *text, size_t size)
{
	while (size) {
		ssize_t sent = send(output, text, size, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		text += sent;
		size -= (size_t)sent;
	}
	return true;
}

static void set_time_limit(int connection, int64_t limit_ns)
{
	struct timeval limit = {.tv_sec = limit_ns / NS_PER_S};

	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static int fail(const char *text)
{
	puts(text);
	return 1;
}

/* Prints the detail of the service's answer, with the reason if it refused the order, and its attachment. */
static int print_answer(const char *text, size_t whole)
{
	const char *feed = memchr(text, '\n', whole);
	size_t size = feed ? (size_t)(feed - text) : whole;

	char state[WORD], reason[WORD], detail[ORDERS_ANSWER];
	struct json_value values[3];

	if (!json_member(text, size, "state", &values[0]) || !json_plain(&values[0], state, sizeof(state)) ||
	    !json_member(text, size, "reason", &values[1]) || !json_plain(&values[1], reason, sizeof(reason)) ||
	    !json_member(text, size, "detail", &values[2]) || !json_plain(&values[2], detail, sizeof(detail)))
		return fail("the executor's service gave no answer; see its journal");
	if (!strcmp(state, "done")) {
		puts(detail);
		if (feed)
			fwrite(feed + 1, 1, whole - size - 1, stdout);
		return fflush(stdout) != 0;
	}
	if (!strcmp(reason, "failed"))
		puts(*detail ? detail : "the action did not end in time; the former state is being restored");
	else
		printf("the executor's service: %s%s%s\n", reason, *detail ? ": " : "", detail);
	return 1;
}

static int pass_order(const struct settings *settings)
{
	static char order[ORDER_MAX];
	struct sockaddr_un address = address_of(settings->socket);
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t size = read_all(STDIN_FILENO, order, sizeof(order), RECEIVE_NS);
	static char answer[ORDERS_ANSWER + ORDERS_ATTACHMENT];

	if (size < 0 || connection < 0)
		return fail("the order cannot be read from standard input");
	set_time_limit(connection, RECEIVE_NS);
	if (connect(connection, (struct sockaddr *)&address, sizeof(address))) {
		printf("the executor's service is not running: %s: %s\n", settings->socket, strerror(errno));
		return 1;
	}
	if (!send_all(connection, order, (size_t)size) || shutdown(connection, SHUT_WR))
		return fail("the executor's service takes no order now");
	size = read_all(connection, answer, sizeof(answer), CLIENT_NS);
	if (size < 0)
		return fail("no answer of the executor's service in time; it may still carry out the order");
	return print_answer(answer, (size_t)size);
}

/* Who can replace one of these files has the rights of this service. */
static void require_own(const char *option, const char *path)
{
	struct stat found;

	if (lstat(path, &found))
		bad_input("--%s: %s: %s", option, path, strerror(errno));
	if (S_ISLNK(found.st_mode) || found.st_uid != geteuid() || found.st_mode & (S_IWGRP | S_IWOTH))
		bad_input("--%s: %s must belong to this user, be writable by this user only, and be no symbolic link", option, path);
}

/* Whoever can rename a parent folder can replace all below it.  In a folder with the sticky bit, only its owner can. */
static void require_parent(const char *option, const char *folder)
{
	struct stat found;

	if (lstat(folder, &found))
		bad_input("--%s: %s: %s", option, folder, strerror(errno));
	if (!S_ISDIR(found.st_mode) || (found.st_uid != 0 && found.st_uid != geteuid()) ||
	    (found.st_mode & (S_IWGRP | S_IWOTH) && !(found.st_mode & S_ISVTX)))
		bad_input("--%s: %s must be a folder of root or this user that nobody else can write to", option, folder);
}

static void require_safe(const char *option, const char *path)
{
	char folder[PATH_MAX];
	char *slash = folder;

	if (*path != '/' || snprintf(folder, sizeof(folder), "%s", path) >= PATH_MAX)
		bad_input("--%s: %.150s is not an absolute path", option, path);
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		require_parent(option, folder);
		*slash = '/';
	}
	slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	require_own(option, folder);
	if (!access(path, F_OK) || strcmp(option, "state") != 0)
		require_own(option, path);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	unlink(path);
	umask(S_IXUSR | S_IXGRP | S_IRWXO);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1))
		bad_input("--socket: %s: %s", path, strerror(errno));
	umask(S_IRWXG | S_IRWXO);
	return listener;
}

/* Undoes what an action that was killed has begun; the program does nothing if there is nothing to undo. */
static void recover(const char *actions)
{
	const char *const words[] = {actions, "recover", "", NULL};
	struct child child = {.words = words, .input = "", .limit_ns = RECOVER_NS};
	char line[WORD];
	int status = child_run(&child, line, sizeof(line));

	if (status || *line)
		log_line("recovery: %s", *line ? line : "not complete; trying again at the next order that fails");
}

static bool has_failed(const char *answer)
{
	struct json_value reason;

	return json_member(answer, strlen(answer), "reason", &reason) && json_is(&reason, "failed");
}

static void serve_connection(struct orders *orders, int connection)
{
	static char message[ORDER_MAX + 1];
	char answer[ORDERS_ANSWER];
	ssize_t size = read_all(connection, message, sizeof(message), RECEIVE_NS);

	set_time_limit(connection, RECEIVE_NS);
	if (size < 0 || !orders_handle(orders, message, (size_t)size, answer))
		return;
	if (send_all(connection, answer, strlen(answer)) && send_all(connection, "\n", 1))
		send_all(connection, orders->attachment.bytes, orders->attachment.size);
	shutdown(connection, SHUT_RDWR); /* the recovery may take longer than the publisher waits */
	if (has_failed(answer))
		recover(orders->options->executor);
}

/* One order at a time; a second one waits in the queue of the socket. */
static int serve(const struct settings *settings)
{
	struct options options = {.signers = settings->signers, .state = settings->state, .executor = settings->actions};
	struct orders orders = {.options = &options, .limit_ns = ACTION_NS};
	int listener;

	require_safe("signers", options.signers);
	require_safe("actions", options.executor);
	require_safe("state", options.state);
	if (access(options.executor, X_OK))
		bad_input("--actions: %s is not a program", options.executor);
	identity_read_machine(settings->machine_id, options.board.machine);
	listener = listen_at(settings->socket);
	recover(options.executor);
	for (;;) {
		int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (connection < 0)
			continue;
		serve_connection(&orders, connection);
		close(connection);
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.socket = "/run/fastenough-executor/socket", .signers = "/etc/fastenough/signers",
		.machine_id = "/etc/machine-id", .state = "/var/lib/fastenough-executor/last-order",
		.actions = "/usr/lib/fastenough-publisher/carry-out",
	};
	int option;

	signal(SIGPIPE, SIG_IGN);
	while ((option = getopt_long(argc, argv, "+", known, NULL)) >= 0) {
		if (option == '?')
			return 2;
		take(&settings, option, optarg);
	}
	if (settings.serve && optind == argc)
		return serve(&settings);
	if (settings.serve || argc - optind != 2)
		bad_input("name an action and its value, with the signed order on standard input, or --serve; see --help");
	return pass_order(&settings);
}
