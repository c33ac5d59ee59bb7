/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Model of a cache: set-associative; of each set, the line that was used least recently is replaced. */
#ifndef EMULATOR_CACHE_H
#define EMULATOR_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct cache {
	uint64_t misses;
	uint64_t *lines; /* numbers of the lines plus one, 0: none; set by set, the most recently used first */
	uint64_t sets;
	unsigned int ways;
	unsigned int line_shift;
};

/* Makes an empty cache of "BYTES:WAYS:LINE"; false if that is not possible, or without memory. */
bool cache_make(struct cache *self, const char *size);

static inline void cache_use_line(struct cache *self, uint64_t line)
{
	uint64_t *set = self->lines + (line & (self->sets - 1)) * self->ways, entry = line + 1;
	unsigned int place = 0;

	while (set[place] != entry && place < self->ways - 1)
		place++;
	self->misses += set[place] != entry;
	for (; place > 0; place--)
		set[place] = set[place - 1];
	set[0] = entry;
}

/* Uses the lines that hold so many bytes. */
static inline void cache_use(struct cache *self, uint64_t address, uint64_t bytes)
{
	uint64_t line = address >> self->line_shift, last = (address + bytes - 1) >> self->line_shift;

	for (; line <= last; line++)
		cache_use_line(self, line);
}

#endif
