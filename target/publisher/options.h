/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

#include "chunk.h"

#define OPTIONS_WORD 256

struct options {
	const char *server;
	int port; /* 0: the default */
	const char *ring, *machine_id, *type;
	const char *ca, *certificate, *key;
	const char *user, *password_file;
	bool without_tls;
	const char *signers, *state, *executor; /* .signers NULL: accepts no orders; .executor NULL: carries out none */
	/* read from the files */
	struct board board;
	char password[OPTIONS_WORD];
};

/* Invalid options end the program with one line and status 2. */
struct options options_parse(int argc, char **argv);

#endif
