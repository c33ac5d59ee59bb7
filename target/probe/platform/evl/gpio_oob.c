/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GPIO lines out of band, by our own driver (target/module/evl): /dev/fastenough-oob/LABEL.  Edges are queued, with the time
 * at which the core's interrupt handler ran. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core.h"
#include "gpio.h"
#include "oob_gpio.h"

#define FOLDER "/dev/" FE_OOB_FOLDER "/"

static size_t chips(const char *label, glob_t *found)
{
	char pattern[PATH_MAX];

	snprintf(pattern, sizeof(pattern), FOLDER "%s", label);
	glob(pattern, 0, NULL, found);
	return found->gl_pathc;
}

static bool present(void)
{
	glob_t found;
	bool any = chips("*", &found) > 0;

	globfree(&found);
	return any;
}

static unsigned lines_of(const char *path)
{
	__u32 lines = 0;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, FE_OOB_LINES, &lines))
		bad_input("%s is not available: %s", path, strerror(errno));
	close(fd);
	return lines;
}

static void find(const char *name, struct gpio_chip *chip)
{
	glob_t found;

	if (chips(name ? name : "*", &found) == 0)
		bad_input("the core has no GPIO chip '%s'; name a file of " FOLDER, name ? name : "");
	if (found.gl_pathc > 1)
		bad_input("there are several GPIO chips; name a file of " FOLDER " with --chip");
	snprintf(chip->path, sizeof(chip->path), "%s", found.gl_pathv[0]);
	snprintf(chip->label, sizeof(chip->label), "%s", found.gl_pathv[0] + strlen(FOLDER));
	chip->lines = lines_of(chip->path);
	globfree(&found);
}

static void take(struct gpio_line *line, bool output, bool high)
{
	struct fe_oob_request request = {.offset = line->offset, .output = output, .high = high};

	line->fd = open(line->chip->path, O_RDWR | O_CLOEXEC);
	if (line->fd < 0 || ioctl(line->fd, FE_OOB_REQUEST, &request))
		bad_input("line %u of %s is not available from the core: %s; choose another line, or release it",
			  line->offset, line->chip->label, strerror(errno));
}

static void request_input(struct gpio_line *line)
{
	take(line, false, false);
}

static void request_output(struct gpio_line *line, bool high)
{
	take(line, true, high);
}

static bool read_level(struct gpio_line *line, bool *high)
{
	__u32 level;

	if (ioctl(line->fd, FE_OOB_LEVEL, &level))
		return false;
	*high = level;
	return true;
}

bool gpio_oob_wait_edge(struct gpio_line *line, struct gpio_edge *edge)
{
	struct fe_oob_edge received;
	ssize_t length = oob_read(line->fd, &received, sizeof(received));

	if (length >= 0 && length != sizeof(received))
		errno = EIO;
	if (length != sizeof(received))
		return false;
	*edge = (struct gpio_edge){.at_mono_ns = (int64_t)received.at_ns, .dropped = received.dropped, .high = received.high};
	return true;
}

bool gpio_oob_write(struct gpio_line *line, bool high)
{
	__u32 level = high;

	return oob_write(line->fd, &level, sizeof(level)) == sizeof(level);
}

/* The driver leaves an output as it found it. */
static void release(struct gpio_line *line)
{
	if (line->fd >= 0)
		close(line->fd);
}

GPIO_WAY(oob, "core's time stamp of the input edge", "response_core", true)
