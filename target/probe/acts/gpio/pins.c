/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the GPIO interface, chip and lines. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "gpio.h"

struct gpio_options gpio_options = {.in = -1, .out = -1};

#define TEXT_OF(WAY) #WAY,
#define ADDRESS_OF(WAY) &gpio_##WAY,
const char *const gpio_way_names[] = {"auto", PINS_WAYS(TEXT_OF) NULL};
static const struct gpio_way *const ways[] = {PINS_WAYS(ADDRESS_OF)};
#define WAYS (int)(sizeof(ways) / sizeof(*ways))

/* The index of the requested way, or of the first available one; -1: none. */
static int choose(void)
{
	for (int i = 0; i < WAYS; i++)
		if ((gpio_options.way == 0 || gpio_options.way == i + 1) && ways[i]->present())
			return i;
	return -1;
}

const struct gpio_way *gpio_open(struct run *run, struct gpio_chip *chip, int *number)
{
	const struct gpio_way *way;

	*number = choose();
	if (*number < 0) {
		run_not_applicable(run, "this machine has no GPIO pins to measure with (no %s)",
				   PINS_LOOKED_FOR(gpio_options.way));
		return NULL;
	}
	way = ways[*number];
	run_self_measured(run);
	way->find(gpio_options.chip, chip);
	run_parameter_text(run, "chip", chip->label);
	run_parameter_text(run, "way", way->name);
	return way;
}

struct gpio_line gpio_line(const struct gpio_chip *chip, const char *option, int64_t offset)
{
	if (offset < 0)
		bad_input("--%s is missing; give a line of %s (0 to %u)", option, chip->label, chip->lines - 1);
	if (offset >= chip->lines)
		bad_input("--%s %" PRId64 ": %s has no such line; choose 0 to %u", option, offset, chip->label,
			  chip->lines - 1);
	return (struct gpio_line){.chip = chip, .offset = (unsigned)offset, .fd = -1};
}

static const struct gpio_way *held_by;
static struct gpio_line *held[2];
static int held_count;

static void release_lines(void)
{
	while (held_count > 0)
		held_by->release(held[--held_count]);
}

static void hold(const struct gpio_way *way, struct gpio_line *line)
{
	if (held_count == 0)
		at_quick_exit(release_lines);
	held_by = way;
	held[held_count++] = line;
}

void gpio_request_input(const struct gpio_way *way, struct gpio_line *line)
{
	hold(way, line);
	way->request_input(line);
}

void gpio_request_output(const struct gpio_way *way, struct gpio_line *line, bool high)
{
	hold(way, line);
	way->request_output(line, high);
}
