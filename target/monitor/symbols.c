/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel function that contains an address, by /proc/kallsyms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define LONGEST 0x10000 /* of a function: an address beyond that belongs to code loaded later, which is unknown */

struct symbol {
	uint64_t address;
	char *name;
};

static struct symbol *symbols;
static size_t count;

static int by_address(const void *a, const void *b)
{
	const struct symbol *first = a, *second = b;

	return (first->address > second->address) - (first->address < second->address);
}

static void add(uint64_t address, const char *name)
{
	if ((count & (count + 1)) == 0) {
		symbols = realloc(symbols, (2 * count + 2) * sizeof(*symbols));
		if (!symbols)
			abort();
	}
	symbols[count++] = (struct symbol){address, strdup(name)};
}

void symbols_read(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char kind, name[256], line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %c %255s", &address, &kind, name) == 3 && strchr("tTwW", kind) && address)
			add(address, name);
	if (file)
		fclose(file);
	qsort(symbols, count, sizeof(*symbols), by_address);
}

const char *symbol_of(uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address - symbols[low - 1].address < LONGEST ? symbols[low - 1].name : NULL;
}
