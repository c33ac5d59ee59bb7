/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another program, run to its end, or to a time limit. */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <stdint.h>

#define CHILD_FILE "/proc/self/fd/3" /* by which the program opens `file` */

struct child {
	const char *const *words; /* of the program, then NULL */
	const char *input;        /* its standard input */
	size_t input_size;
	const char *file;         /* NULL: none */
	size_t file_size;
	int64_t limit_ns;
};

/*
 * Its exit status; -1 where it cannot be started, ends by a signal, or it or what it left behind holds the output longer
 * than its limit, when all of its group are killed.  `line` is the beginning of the first line that it printed, or why it
 * could not be started.
 */
int child_run(const struct child *child, char *line, size_t room);

#endif
