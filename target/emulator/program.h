/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The code of a program file, by which its instructions are known in the guest. */
#ifndef EMULATOR_PROGRAM_H
#define EMULATOR_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_LEAST_MATCH 16 /* bytes: shorter code occurs at the same address in other programs */

struct program {
	const uint8_t *code;
	uint64_t address; /* where the code is mapped */
	uint64_t size;
};

/* Reads a 64-bit ELF file with fixed addresses; false if it is none, or cannot be read. */
bool program_read(struct program *self, const char *path);

/* Whether these bytes, of at least PROGRAM_LEAST_MATCH, are the program's at this address. */
bool program_has(const struct program *self, uint64_t address, const void *bytes, size_t size);

#endif
