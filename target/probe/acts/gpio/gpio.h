/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GPIO lines, by the interfaces ("ways") of the platform, such as the character device (v2), or sysfs as a fallback.  The
 * platform's pins.h lists them; a new one is a file and a line there.
 */
#ifndef GPIO_H
#define GPIO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "pins.h"

#define GPIO_LABEL 64
#define GPIO_CONSUMER "fastenough"

struct gpio_chip {
	const char *name; /* as requested, or as found; valid during the run */
	char path[PATH_MAX];
	char label[GPIO_LABEL];
	unsigned lines;
	unsigned base; /* of sysfs numbers */
};

struct gpio_line {
	const struct gpio_chip *chip;
	unsigned offset;
	int fd;
	bool was_output, exported;
	uint32_t seqno; /* of the last edge */
};

struct gpio_edge {
	int64_t at_mono_ns;
	uint32_t dropped; /* edges before this one that the kernel dropped */
	bool high;
};

struct gpio_way {
	const char *name;
	const char *edge_seen;   /* the event that gpio_edge.at_mono_ns is the time of */
	const char *series;      /* name of a series that begins there */
	bool stamped;            /* it is the time of the edge itself, not that at which the task saw it */
	bool (*present)(void);
	/* Fills in the chip of that name, or the only one where name is NULL; else bad input. */
	void (*find)(const char *name, struct gpio_chip *chip);
	void (*request_input)(struct gpio_line *line);
	void (*request_output)(struct gpio_line *line, bool high);
	bool (*read)(struct gpio_line *line, bool *high);
	void (*release)(struct gpio_line *line); /* restores the line, also after a failed request */
};

/* Defines the way that a file implements by static functions with the names below; WAY is also the value of --way. */
#define GPIO_WAY(WAY, EDGE_SEEN, SERIES, STAMPED)                                                                   \
	const struct gpio_way gpio_##WAY = {                                                                       \
		.name = #WAY,                                                                                      \
		.edge_seen = EDGE_SEEN,                                                                            \
		.series = SERIES,                                                                                  \
		.stamped = STAMPED,                                                                                \
		.present = present,                                                                                \
		.find = find,                                                                                      \
		.request_input = request_input,                                                                    \
		.request_output = request_output,                                                                  \
		.read = read_level,                                                                                \
		.release = release,                                                                                \
	};

/* The timed functions of each way, called directly; false with errno. */
#define GPIO_DECLARE(WAY)                                                                                          \
	extern const struct gpio_way gpio_##WAY;                                                                   \
	bool gpio_##WAY##_wait_edge(struct gpio_line *line, struct gpio_edge *edge);                               \
	bool gpio_##WAY##_write(struct gpio_line *line, bool high);
PINS_WAYS(GPIO_DECLARE)

/* Options common to the probes that use pins. */
struct gpio_options {
	const char *chip;
	int way; /* index into gpio_way_names */
	int64_t in, out;
};
extern struct gpio_options gpio_options;
extern const char *const gpio_way_names[];

#define GPIO_OPTION_CHIP \
	{ .name = "chip", .kind = OPTION_TEXT, .target = &gpio_options.chip, \
	  .help = "GPIO chip, by name (gpiochip0) or label; needed only if there are several" }
#define GPIO_OPTION_WAY \
	{ .name = "way", .kind = OPTION_CHOICE, .target = &gpio_options.way, .choices = gpio_way_names, \
	  .help = "GPIO interface: auto (the character device if the kernel has one), cdev, sysfs" }
#define GPIO_OPTION_LINE(NAME, HELP) \
	{ .name = #NAME, .kind = OPTION_INTEGER, .target = &gpio_options.NAME, .low = 0, .high = 65535, .help = HELP }

/* Opens the requested way and chip; NULL after run_not_applicable() if there is none.  `number` becomes the index of the way
 * in PINS_WAYS, by which an act selects its loop. */
const struct gpio_way *gpio_open(struct run *run, struct gpio_chip *chip, int *number);
/* Checks an offset against its chip; else bad input. */
struct gpio_line gpio_line(const struct gpio_chip *chip, const char *option, int64_t offset);
/* Request a line; at the end of the run, however it ends, the line is restored. */
void gpio_request_input(const struct gpio_way *way, struct gpio_line *line);
void gpio_request_output(const struct gpio_way *way, struct gpio_line *line, bool high);

#endif
