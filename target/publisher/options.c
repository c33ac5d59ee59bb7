/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "identity.h"
#include "log.h"

#define TLS_PORT 8883
#define PLAIN_PORT 1883
#define TYPE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

struct option_text {
	const char *name, *help;
	bool flag;
};

static const struct option_text texts[] = {
	{"server", "host name or address of the MQTT server", false},
	{"port", "its port (8883; 1883 without TLS)", false},
	{"ring", "folder into which the board's service records (/var/lib/fastenough/ring)", false},
	{"machine-id", "file with the board's machine ID (/etc/machine-id)", false},
	{"type", "type of the board: up to 64 letters, digits, '.', '_' and '-' (the name of its hardware)", false},
	{"ca", "certificate of the authority that signed the server's (those of the system)", false},
	{"cert", "certificate of this board, with --key", false},
	{"key", "its private key, not encrypted", false},
	{"user", "name of this board at the server, with --password-file", false},
	{"password-file", "file whose first line is the password", false},
	{"signers", "allowed signers of orders, see ssh-keygen(1) (no orders are accepted)", false},
	{"state", "file with the time of the newest order (/var/lib/fastenough-publisher/last-order)", false},
	{"executor", "program that carries out orders, such as fastenough-executor", false},
	{"without-tls", "connect without encryption; never with a password", true},
	{"help", "print this text", true},
	{"version", "print the version", true},
};

enum { SERVER, PORT, RING, MACHINE_ID, TYPE, CA, CERT, KEY, USER, PASSWORD_FILE, SIGNERS, STATE, EXECUTOR, WITHOUT_TLS, HELP, VERSION, OPTIONS };

static void print_help(void)
{
	puts("Usage: fastenough-publisher --server HOST [options]\n"
	     "Publishes the recordings of a board's ring to the takers of a fleet, by MQTT.\n\n"
	     "Options:");
	for (int i = 0; i < OPTIONS; i++)
		printf("      --%-16s %s\n", texts[i].name, texts[i].help);
	exit(0);
}

static void print_version(void)
{
	puts("fastenough-publisher " PUBLISHER_VERSION);
	exit(0);
}

static int port_of(const char *text)
{
	char *end;
	long port = strtol(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || port < 1 || port > 65535)
		bad_input("--port: %s is not a port; name one from 1 to 65535", text);
	return (int)port;
}

/* The name of the hardware, with other characters replaced by '-'. */
static void read_type(struct board *board)
{
	char text[CHUNK_TYPE];

	if ((!first_line("/sys/firmware/devicetree/base/model", text, sizeof(text)) &&
	     !first_line("/sys/class/dmi/id/product_name", text, sizeof(text))) || !*text)
		strcpy(text, "unknown");
	for (char *letter = text; *letter; letter++)
		if (!strchr(TYPE_LETTERS, *letter))
			*letter = '-';
	strcpy(board->type, text);
}

static void take_type(struct options *options)
{
	const char *type = options->type;

	if (!type)
		read_type(&options->board);
	else if (!*type || strlen(type) >= CHUNK_TYPE || type[strspn(type, TYPE_LETTERS)])
		bad_input("--type: '%.70s' is not 1 to 64 letters, digits, '.', '_' and '-'", type);
	else
		strcpy(options->board.type, type);
}

static void require_readable(const char *option, const char *path)
{
	if (path && access(path, R_OK))
		bad_input("--%s: %s: %s", option, path, strerror(errno));
}

/* The server would refuse an empty or truncated password without stating the cause. */
static void read_password(struct options *options)
{
	size_t length;

	if (!first_line(options->password_file, options->password, sizeof(options->password)))
		bad_input("--password-file: %s: %s", options->password_file, strerror(errno));
	length = strlen(options->password);
	if (!length || length == sizeof(options->password) - 1)
		bad_input("--password-file: the first line of %s is not a password of 1 to %zu characters", options->password_file,
			  sizeof(options->password) - 2);
}

static void check_access(struct options *options)
{
	if (!options->certificate != !options->key)
		bad_input("--cert and --key need each other");
	if (!options->user != !options->password_file)
		bad_input("--user and --password-file need each other");
	if (options->without_tls && (options->user || options->ca || options->key))
		bad_input("--without-tls would send passwords for all to read; omit it, or all of --ca, --cert, --key and --user");
	require_readable("ca", options->ca);
	require_readable("cert", options->certificate);
	require_readable("key", options->key);
	require_readable("signers", options->signers);
	if (options->executor && (*options->executor != '/' || access(options->executor, X_OK)))
		bad_input("--executor: %s is not the absolute path of a program", options->executor);
	if (options->password_file)
		read_password(options);
}

static void take(struct options *options, int option, const char *value)
{
	const char **words[OPTIONS] = {
		[SERVER] = &options->server, [RING] = &options->ring, [MACHINE_ID] = &options->machine_id,
		[TYPE] = &options->type, [CA] = &options->ca, [CERT] = &options->certificate, [KEY] = &options->key,
		[USER] = &options->user, [PASSWORD_FILE] = &options->password_file, [SIGNERS] = &options->signers,
		[STATE] = &options->state, [EXECUTOR] = &options->executor,
	};

	if (option == HELP)
		print_help();
	else if (option == VERSION)
		print_version();
	else if (option == WITHOUT_TLS)
		options->without_tls = true;
	else if (option == PORT)
		options->port = port_of(value);
	else
		*words[option] = value;
}

struct options options_parse(int argc, char **argv)
{
	struct options options = {
		.ring = "/var/lib/fastenough/ring", .machine_id = "/etc/machine-id",
		.state = "/var/lib/fastenough-publisher/last-order",
	};
	struct option known[OPTIONS + 1] = {0};
	int option;

	for (int i = 0; i < OPTIONS; i++)
		known[i] = (struct option){texts[i].name, texts[i].flag ? no_argument : required_argument, NULL, i};
	while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (option == '?')
			exit(2);
		take(&options, option, optarg);
	}
	if (optind < argc)
		bad_input("'%.100s' is no option; see --help", argv[optind]);
	if (!options.server || !*options.server)
		bad_input("--server is missing; name the host of the MQTT server");
	if (!options.port)
		options.port = options.without_tls ? PLAIN_PORT : TLS_PORT;
	check_access(&options);
	identity_read_machine(options.machine_id, options.board.machine);
	take_type(&options);
	return options;
}
