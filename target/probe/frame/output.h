/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing with a bound: errors are errnos, ETIMEDOUT where nothing was read for too long, EINTR where a signal ended it. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>

/* From here on nothing blocks for ever. */
void output_prepare(void);

/* Opens a FIFO too, once somebody reads it; -1 and errno. */
int output_open(const char *path, int flags);

/* How much was written; all of it where error is 0. */
size_t output_write(int fd, const char *text, size_t size, int *error);

/* The same, without waiting for whoever does not read. */
size_t output_try(int fd, const char *text, size_t size);

const char *output_error_text(int error);

#endif
