/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "program.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_at(FILE *file, uint64_t offset, void *buffer, size_t size)
{
	return !fseek(file, (long)offset, SEEK_SET) && fread(buffer, 1, size, file) == size;
}

static bool read_code(struct program *self, FILE *file, const Elf64_Phdr *part)
{
	uint8_t *code = malloc(part->p_filesz);

	if (code && read_at(file, part->p_offset, code, part->p_filesz)) {
		*self = (struct program){code, part->p_vaddr, part->p_filesz};
		return true;
	}
	free(code);
	return false;
}

static bool find_code(struct program *self, FILE *file)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (!read_at(file, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_EXEC || head.e_phentsize != sizeof(part))
		return false;
	for (int i = 0; i < head.e_phnum; i++) {
		if (!read_at(file, head.e_phoff + (uint64_t)i * sizeof(part), &part, sizeof(part)))
			return false;
		if (part.p_type == PT_LOAD && part.p_flags & PF_X)
			return read_code(self, file, &part);
	}
	return false;
}

bool program_read(struct program *self, const char *path)
{
	FILE *file = fopen(path, "rb");
	bool found = file && find_code(self, file);

	if (file)
		fclose(file);
	return found;
}

bool program_has(const struct program *self, uint64_t address, const void *bytes, size_t size)
{
	uint64_t offset = address - self->address;

	return size >= PROGRAM_LEAST_MATCH && address >= self->address && offset < self->size &&
	       size <= self->size - offset && !memcmp(self->code + offset, bytes, size);
}
