/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine ID of this board, and other files of one line. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "chunk.h"

/* First line of a file, without its newline; false and errno if the file cannot be read. */
bool first_line(const char *path, char *text, size_t room);
/* A file without a machine ID ends the program with one line and status 2. */
void identity_read_machine(const char *path, char machine[CHUNK_MACHINE]);

#endif
