/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

#include "chunk.h"

#define OPTIONS_WORD 256

struct options {
	const char *server;
	int port; /* 0: by default */
	const char *ring, *machine_id, *type;
	const char *ca, *certificate, *key;
	const char *user, *password_file;
	bool without_tls;
	const char *signers, *state, *executor; /* NULL: no orders; the newest one; none is carried out */
	/* read from the files */
	struct board board;
	char password[OPTIONS_WORD];
};

/* Bad ones end the program with one line and status 2. */
struct options options_parse(int argc, char **argv);

#endif
