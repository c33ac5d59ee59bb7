/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a memory of so many bytes, a power of two, line by line and again and again.  The instructions are the same for
 * each size; only the lines of the cache that they use differ.
 *
 *	cache-walk BYTES
 */
#include <stdlib.h>

#define LINE 64

int main(int argc, char **argv)
{
	size_t bytes = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	volatile char *memory = bytes < LINE ? NULL : aligned_alloc(LINE, bytes);

	if (!memory)
		return 2;
	for (size_t place = 0;; place = (place + LINE) & (bytes - 1))
		memory[place]++;
}
