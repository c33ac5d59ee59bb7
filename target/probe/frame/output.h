/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing with a time limit.  Errors are errnos: ETIMEDOUT if the reader took nothing for too long, EINTR if a signal
 * interrupted it. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>

/* Installs the signal that limits writes; call it first. */
void output_prepare(void);

/* Opens a file, or waits for the reader of a FIFO; -1 and errno. */
int output_open(const char *path, int flags);

/* Returns the number of bytes written: all if error is 0. */
size_t output_write(int fd, const char *text, size_t size, int *error);

/* The same, without waiting for the reader. */
size_t output_try(int fd, const char *text, size_t size);

const char *output_error_text(int error);

#endif
