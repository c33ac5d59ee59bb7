/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model of a cache against its definition: an access hits if fewer other lines of its set than the cache has ways
 * were used since the last access to its line.
 */
#include <stdlib.h>

#include "cache.h"
#include "check.h"

#define ACCESSES 20000

struct shape {
	const char *text;
	uint64_t sets;
	unsigned int ways;
	uint64_t line;
};

static const struct shape shapes[] = {
	{"32768:4:64", 128, 4, 64}, {"1024:2:32", 16, 2, 32}, {"512:1:64", 8, 1, 64},
	{"1024:16:64", 1, 16, 64},  {"768:3:64", 4, 3, 64},
};

static uint64_t history[ACCESSES];

/* Looks back through the whole history, and uses none of the model's code. */
static bool hits(const struct shape *shape, int now)
{
	uint64_t others[16], line = history[now];
	unsigned int count = 0;

	for (int before = now - 1; before >= 0; before--) {
		bool known = false;

		if (history[before] == line)
			return true;
		if (history[before] % shape->sets != line % shape->sets)
			continue;
		for (unsigned int i = 0; i < count; i++)
			known |= others[i] == history[before];
		if (known)
			continue;
		if (count == shape->ways - 1)
			return false;
		others[count++] = history[before];
	}
	return false;
}

/* Addresses near each other and far away, so that both hits and misses are frequent. */
static uint64_t some_address(const struct shape *shape)
{
	uint64_t bytes = shape->sets * shape->ways * shape->line, far = (uint64_t)rand() % 8 ? 0 : (uint64_t)rand() << 20;

	return far + (uint64_t)rand() % (2 * bytes);
}

static void as_defined(const struct shape *shape)
{
	struct cache cache;
	uint64_t misses = 0;

	check(cache_make(&cache, shape->text));
	check(cache.sets == shape->sets && cache.ways == shape->ways);
	for (int now = 0; now < ACCESSES; now++) {
		uint64_t address = some_address(shape);

		history[now] = address / shape->line;
		misses += !hits(shape, now);
		cache_use(&cache, address, 1);
		check(cache.misses == misses);
	}
	check(misses > ACCESSES / 10 && misses < ACCESSES * 9 / 10);
	free(cache.lines);
}

static void over_the_end_of_a_line(void)
{
	struct cache cache;

	check(cache_make(&cache, "32768:4:64"));
	cache_use(&cache, 60, 8);
	check(cache.misses == 2);
	cache_use(&cache, 0, 8);
	cache_use(&cache, 64, 8);
	cache_use(&cache, 56, 8);
	check(cache.misses == 2);
	free(cache.lines);
}

static void impossible_sizes(void)
{
	static const char *const texts[] = {"", "32768", "32768:4", "32768:4:64:1", "32768:4:64x", "32768:0:64", "32768:4:48",
					    "32768:4:0", "24576:4:64", "0:4:64", "100:4:64"};
	struct cache cache;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		check(!cache_make(&cache, texts[i]));
}

int main(void)
{
	srand(1);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		as_defined(&shapes[i]);
	over_the_end_of_a_line();
	impossible_sizes();
	return failures != 0;
}
