/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs another program, with a time limit. */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <stdint.h>

#define CHILD_FILE "/proc/self/fd/3" /* path by which the program opens `file` */

/* What follows the first line of output; `size` is 0 if it does not fit. */
struct child_rest {
	char *bytes;
	size_t room, size;
};

struct child {
	const char *const *words; /* its arguments, ended by NULL */
	const char *input;        /* its standard input */
	size_t input_size;
	const char *file;         /* NULL: none */
	size_t file_size;
	int64_t limit_ns;
	struct child_rest *rest;  /* NULL: it is ignored */
};

/*
 * Returns its exit status; -1 if it cannot be started, is ended by a signal, or if it or a program that it left behind
 * holds the output longer than its limit.  At the limit its process group is killed.  `line` receives the beginning of
 * its first line of output, or why it could not be started.
 */
int child_run(const struct child *child, char *line, size_t room);

#endif
