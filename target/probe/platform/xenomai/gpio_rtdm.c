/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTDM's GPIO devices, /dev/rtdm/LABEL/gpioN: edges come with the time at which the core's interrupt handler ran.  They are
 * not queued: edges that come before the task has run are one, with the level that the line has then. */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <rtdm/gpio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cobalt.h"
#include "gpio.h"

#define DEVICES "/dev/rtdm/%s/gpio*"
#define FOLDERS "/dev/rtdm/"

static size_t lines_of(const char *label, glob_t *found)
{
	char pattern[PATH_MAX];

	snprintf(pattern, sizeof(pattern), DEVICES, label);
	glob(pattern, 0, NULL, found);
	return found->gl_pathc;
}

static bool present(void)
{
	glob_t found;
	bool any = lines_of("*", &found) > 0;

	globfree(&found);
	return any;
}

/* The number that Linux gives the line, at the end of its device's name. */
static unsigned number_of(const char *path)
{
	return (unsigned)strtoul(strrchr(path, '/') + strlen("/gpio"), NULL, 10);
}

static size_t label_length(const char *path)
{
	return strcspn(path + strlen(FOLDERS), "/");
}

/* The lines of one chip carry the numbers from its base on. */
static void take_chip(struct gpio_chip *chip, const glob_t *found)
{
	const char *first = found->gl_pathv[0];

	chip->base = number_of(first);
	for (size_t i = 0; i < found->gl_pathc; i++)
		if (number_of(found->gl_pathv[i]) < chip->base)
			chip->base = number_of(found->gl_pathv[i]);
	chip->lines = (unsigned)found->gl_pathc;
	snprintf(chip->label, sizeof(chip->label), "%.*s", (int)label_length(first), first + strlen(FOLDERS));
	snprintf(chip->path, sizeof(chip->path), FOLDERS "%s", chip->label);
}

static void find(const char *name, struct gpio_chip *chip)
{
	glob_t found;

	if (lines_of(name ? name : "*", &found) == 0)
		bad_input("the core has no GPIO chip '%s'; name a folder of " FOLDERS " that holds lines", name ? name : "");
	for (size_t i = 1; i < found.gl_pathc; i++)
		if (label_length(found.gl_pathv[i]) != label_length(found.gl_pathv[0]) ||
		    strncmp(found.gl_pathv[i], found.gl_pathv[0], strlen(FOLDERS) + label_length(found.gl_pathv[0])))
			bad_input("there are several GPIO chips; name a folder of " FOLDERS " with --chip");
	take_chip(chip, &found);
	globfree(&found);
}

static void __attribute__((noreturn)) refuse(const struct gpio_line *line)
{
	bad_input("line %u of %s is not available from the core: %s; choose another line, or release it", line->offset,
		  line->chip->label, strerror(errno));
}

static void open_line(struct gpio_line *line)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/gpio%u", line->chip->path, line->chip->base + line->offset);
	line->fd = __RT(open(path, O_RDWR));
	if (line->fd < 0)
		refuse(line);
}

static void request_input(struct gpio_line *line)
{
	int stamped = 1, edges = GPIO_TRIGGER_EDGE_RISING | GPIO_TRIGGER_EDGE_FALLING;

	open_line(line);
	if (__RT(ioctl(line->fd, GPIO_RTIOC_DIR_IN)) || __RT(ioctl(line->fd, GPIO_RTIOC_TS_MONO, &stamped)) ||
	    __RT(ioctl(line->fd, GPIO_RTIOC_IRQEN, &edges)))
		refuse(line);
}

static void request_output(struct gpio_line *line, bool high)
{
	int level = high;

	open_line(line);
	if (__RT(ioctl(line->fd, GPIO_RTIOC_DIR_OUT, &level)))
		refuse(line);
	line->exported = true;
}

static bool read_out(struct gpio_line *line, struct rtdm_gpio_readout *readout)
{
	ssize_t length = __RT(read(line->fd, readout, sizeof(*readout)));

	if (length >= 0 && length != sizeof(*readout))
		errno = EIO;
	return length == sizeof(*readout);
}

/* Only a read that may not wait is answered at once. */
static bool read_level(struct gpio_line *line, bool *high)
{
	struct rtdm_gpio_readout readout;

	if (__RT(fcntl(line->fd, F_SETFL, O_RDWR | O_NONBLOCK)) || !read_out(line, &readout))
		return false;
	*high = readout.value;
	return __RT(fcntl(line->fd, F_SETFL, O_RDWR)) == 0;
}

bool gpio_rtdm_wait_edge(struct gpio_line *line, struct gpio_edge *edge)
{
	struct rtdm_gpio_readout readout;

	if (!read_out(line, &readout))
		return false;
	*edge = (struct gpio_edge){.at_mono_ns = (int64_t)readout.timestamp, .high = readout.value};
	return true;
}

bool gpio_rtdm_write(struct gpio_line *line, bool high)
{
	int level = high;

	return __RT(write(line->fd, &level, sizeof(level))) == sizeof(level);
}

/* What a line was before cannot be asked; as an input it drives no wire. */
static void release(struct gpio_line *line)
{
	if (line->fd < 0)
		return;
	if (line->exported)
		__RT(ioctl(line->fd, GPIO_RTIOC_DIR_IN));
	__RT(close(line->fd));
}

GPIO_WAY(rtdm, "core's time stamp of the input edge", "response_core", true)
