/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /sys/class/gpio, for kernels without the character device: no time stamps, and fast edges merge into one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpio.h"

#define CLASS "/sys/class/gpio"
#define CHIPS CLASS "/gpiochip*"

static bool read_text(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	bool done = file && fgets(text, (int)size, file);

	if (file)
		fclose(file);
	if (done)
		text[strcspn(text, "\n")] = '\0';
	return done;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return done;
}

static bool read_unsigned(const char *folder, const char *file, unsigned *value)
{
	char path[PATH_MAX], text[32];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return read_text(path, text, sizeof(text)) && sscanf(text, "%u", value) == 1;
}

static bool present(void)
{
	glob_t chips;
	bool found = glob(CHIPS, 0, NULL, &chips) == 0;

	globfree(&chips);
	return found;
}

static bool read_chip(const char *folder, struct gpio_chip *chip)
{
	char path[PATH_MAX];

	snprintf(chip->path, sizeof(chip->path), "%s", folder);
	snprintf(path, sizeof(path), "%s/label", folder);
	return read_text(path, chip->label, sizeof(chip->label)) && read_unsigned(folder, "ngpio", &chip->lines) &&
	       read_unsigned(folder, "base", &chip->base);
}

static void find(const char *name, struct gpio_chip *chip)
{
	struct gpio_chip candidate;
	glob_t chips;
	int found = 0;

	glob(CHIPS, 0, NULL, &chips);
	for (size_t i = 0; i < chips.gl_pathc; i++) {
		const char *folder = chips.gl_pathv[i];

		if (!read_chip(folder, &candidate))
			continue;
		if (name && strcmp(name, candidate.label) && strcmp(name, strrchr(folder, '/') + 1))
			continue;
		*chip = candidate;
		found++;
	}
	globfree(&chips);
	if (found == 0)
		bad_input("there is no GPIO chip '%s'; name one of " CHIPS " or its label", name);
	if (found > 1)
		bad_input("there are %d GPIO chips; name one of " CHIPS " with --chip", found);
}

static void line_path(const struct gpio_line *line, const char *file, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, CLASS "/gpio%u/%s", line->chip->base + line->offset, file);
}

static void set_line(const struct gpio_line *line, const char *file, const char *text)
{
	char path[PATH_MAX];

	line_path(line, file, path);
	if (!write_text(path, text))
		bad_input("line %u of %s cannot be set to %s: %s; choose another line", line->offset, line->chip->label, text,
			  strerror(errno));
}

static void export_line(struct gpio_line *line)
{
	char number[16], path[PATH_MAX], direction[8];

	snprintf(number, sizeof(number), "%u", line->chip->base + line->offset);
	if (!write_text(CLASS "/export", number)) {
		if (errno == EBUSY)
			bad_input("line %u of %s is in use; choose another line, or free it: echo %s > " CLASS "/unexport",
				  line->offset, line->chip->label, number);
		bad_input("line %u of %s is not available: %s; run as root or choose another line", line->offset,
			  line->chip->label, strerror(errno));
	}
	line->exported = true;
	line_path(line, "direction", path);
	line->was_output = read_text(path, direction, sizeof(direction)) && !strcmp(direction, "out");
}

static void open_value(struct gpio_line *line, int flags)
{
	char path[PATH_MAX];

	line_path(line, "value", path);
	line->fd = open(path, flags | O_CLOEXEC);
	if (line->fd < 0)
		bad_input("%s: %s; run as root or choose another line", path, strerror(errno));
}

static bool read_level(struct gpio_line *line, bool *high)
{
	char digit;

	if (pread(line->fd, &digit, 1, 0) != 1)
		return false;
	*high = digit == '1';
	return true;
}

static void request_input(struct gpio_line *line)
{
	export_line(line);
	set_line(line, "direction", "in");
	set_line(line, "edge", "both");
	open_value(line, O_RDONLY);
}

static void request_output(struct gpio_line *line, bool high)
{
	export_line(line);
	set_line(line, "direction", high ? "high" : "low");
	open_value(line, O_RDWR);
}

bool gpio_sysfs_wait_edge(struct gpio_line *line, struct gpio_edge *edge)
{
	struct pollfd polled = {.fd = line->fd, .events = POLLPRI};

	if (poll(&polled, 1, -1) < 0)
		return false;
	edge->at_mono_ns = mono_ns();
	edge->dropped = 0;
	return read_level(line, &edge->high);
}

bool gpio_sysfs_write(struct gpio_line *line, bool high)
{
	return pwrite(line->fd, high ? "1" : "0", 1, 0) == 1;
}

static void release(struct gpio_line *line)
{
	char number[16], path[PATH_MAX];

	if (!line->exported)
		return;
	line_path(line, "direction", path);
	if (!line->was_output)
		write_text(path, "in");
	snprintf(number, sizeof(number), "%u", line->chip->base + line->offset);
	write_text(CLASS "/unexport", number);
}

GPIO_WAY(sysfs, "task saw the input edge", "answer", false)
