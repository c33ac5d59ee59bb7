/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

bool cache_make(struct cache *self, const char *size)
{
	unsigned int bytes, ways, line;
	char rest;

	if (sscanf(size, "%u:%u:%u%c", &bytes, &ways, &line, &rest) != 3 || !ways || !is_power_of_two(line) ||
	    bytes % ((uint64_t)ways * line) || !is_power_of_two(bytes / ((uint64_t)ways * line)))
		return false;
	*self = (struct cache){
		.sets = bytes / ((uint64_t)ways * line),
		.ways = ways,
		.line_shift = (unsigned int)__builtin_ctz(line),
	};
	self->lines = calloc(self->sets * ways, sizeof(*self->lines));
	return self->lines != NULL;
}
