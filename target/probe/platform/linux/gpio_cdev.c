/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GPIO character device, version 2 (Linux 5.10 and up): edges come with the kernel's time stamp. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/gpio.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpio.h"

#define DEVICES "/dev/gpiochip*"
#define EDGE_BUFFER_SIZE 1024 /* by the kernel, while the task is late; more are dropped and counted */

static int open_chip(const char *path, struct gpiochip_info *info)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int error;

	if (fd < 0)
		return -1;
	if (ioctl(fd, GPIO_GET_CHIPINFO_IOCTL, info) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static void line_info(int chip_fd, unsigned offset, struct gpio_v2_line_info *info)
{
	*info = (struct gpio_v2_line_info){.offset = offset};
	if (ioctl(chip_fd, GPIO_V2_GET_LINEINFO_IOCTL, info))
		*info = (struct gpio_v2_line_info){.offset = offset};
}

/* A kernel with version 1 only has the devices, but not this call. */
static bool is_version_2(const char *path)
{
	struct gpio_v2_line_info info = {.offset = 0};
	struct gpiochip_info chip;
	int fd = open_chip(path, &chip);
	bool known;

	if (fd < 0)
		return errno == EACCES || errno == EPERM;
	known = ioctl(fd, GPIO_V2_GET_LINEINFO_IOCTL, &info) == 0;
	close(fd);
	return known;
}

static bool present(void)
{
	bool found = false;
	glob_t devices;

	glob(DEVICES, 0, NULL, &devices);
	for (size_t i = 0; i < devices.gl_pathc && !found; i++)
		found = is_version_2(devices.gl_pathv[i]);
	globfree(&devices);
	return found;
}

/* Some systems have a second name for a chip, by a link or a node: both names are the same chip. */
static bool has_earlier_name(const glob_t *devices, size_t which)
{
	struct stat this, other;

	if (stat(devices->gl_pathv[which], &this))
		return false;
	for (size_t i = 0; i < which; i++)
		if (stat(devices->gl_pathv[i], &other) == 0 && other.st_rdev == this.st_rdev)
			return true;
	return false;
}

static bool is_called(const struct gpiochip_info *info, const char *path, const char *name)
{
	return !name || !strcmp(name, info->name) || !strcmp(name, info->label) || !strcmp(name, path);
}

static void take_chip(struct gpio_chip *chip, const char *path, const struct gpiochip_info *info)
{
	snprintf(chip->path, sizeof(chip->path), "%s", path);
	snprintf(chip->label, sizeof(chip->label), "%s", info->label);
	chip->lines = info->lines;
}

static void find(const char *name, struct gpio_chip *chip)
{
	struct gpiochip_info info;
	glob_t devices;
	int found = 0;

	glob(DEVICES, 0, NULL, &devices);
	for (size_t i = 0; i < devices.gl_pathc; i++) {
		const char *path = devices.gl_pathv[i];
		int fd = open_chip(path, &info);

		if (fd < 0 && errno == ENOENT)
			continue; /* a link to nothing */
		if (fd < 0)
			bad_input("%s: %s; run as root or as a member of the device's group", path, strerror(errno));
		close(fd);
		if (!is_called(&info, path, name) || (has_earlier_name(&devices, i) && (!name || strcmp(name, path))))
			continue;
		take_chip(chip, path, &info);
		found++;
	}
	globfree(&devices);
	if (found == 0)
		bad_input("there is no GPIO chip '%s'; name one of " DEVICES " or its label (gpiodetect lists them)", name);
	if (found > 1)
		bad_input("there are %d GPIO chips%s%s; name one of " DEVICES " with --chip", found, name ? " labelled " : "",
			  name ? name : "");
}

static void refuse(const struct gpio_line *line, int chip_fd, int error)
{
	struct gpio_v2_line_info info;

	line_info(chip_fd, line->offset, &info);
	if (error == EBUSY)
		bad_input("line %u of %s is in use by '%s'; choose another line or release it", line->offset,
			  line->chip->label, *info.consumer ? info.consumer : "the kernel");
	if (error == ENXIO || error == ENODEV || error == EOPNOTSUPP)
		bad_input("line %u of %s cannot raise interrupts; choose another line", line->offset, line->chip->label);
	bad_input("line %u of %s is not available: %s; choose another line", line->offset, line->chip->label, strerror(error));
}

static void request(struct gpio_line *line, const struct gpio_v2_line_config *config)
{
	struct gpio_v2_line_request request = {
		.offsets = {line->offset}, .num_lines = 1, .event_buffer_size = EDGE_BUFFER_SIZE, .config = *config,
		.consumer = GPIO_CONSUMER,
	};
	struct gpio_v2_line_info before;
	int chip_fd = open(line->chip->path, O_RDWR | O_CLOEXEC);

	if (chip_fd < 0)
		bad_input("%s: %s; the chip has disappeared", line->chip->path, strerror(errno));
	line_info(chip_fd, line->offset, &before);
	line->was_output = before.flags & GPIO_V2_LINE_FLAG_OUTPUT;
	if (ioctl(chip_fd, GPIO_V2_GET_LINE_IOCTL, &request))
		refuse(line, chip_fd, errno);
	close(chip_fd);
	line->fd = request.fd;
}

static void request_input(struct gpio_line *line)
{
	request(line, &(struct gpio_v2_line_config){
		.flags = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING,
	});
}

static void request_output(struct gpio_line *line, bool high)
{
	request(line, &(struct gpio_v2_line_config){
		.flags = GPIO_V2_LINE_FLAG_OUTPUT,
		.num_attrs = 1,
		.attrs = {{.attr = {.id = GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES, .values = high}, .mask = 1}},
	});
}

static bool read_level(struct gpio_line *line, bool *high)
{
	struct gpio_v2_line_values values = {.mask = 1};

	if (ioctl(line->fd, GPIO_V2_LINE_GET_VALUES_IOCTL, &values))
		return false;
	*high = values.bits & 1;
	return true;
}

bool gpio_cdev_wait_edge(struct gpio_line *line, struct gpio_edge *edge)
{
	struct gpio_v2_line_event event;
	ssize_t got = read(line->fd, &event, sizeof(event));

	if (got != sizeof(event)) {
		errno = got < 0 ? errno : EIO;
		return false;
	}
	edge->at_mono_ns = (int64_t)event.timestamp_ns;
	edge->dropped = event.line_seqno - line->seqno - 1;
	edge->high = event.id == GPIO_V2_LINE_EVENT_RISING_EDGE;
	line->seqno = event.line_seqno;
	return true;
}

bool gpio_cdev_write(struct gpio_line *line, bool high)
{
	struct gpio_v2_line_values values = {.bits = high, .mask = 1};

	return ioctl(line->fd, GPIO_V2_LINE_SET_VALUES_IOCTL, &values) == 0;
}

/* A released line keeps its direction: one that was an input before must not drive its wire any longer. */
static void release(struct gpio_line *line)
{
	struct gpio_v2_line_config input = {.flags = GPIO_V2_LINE_FLAG_INPUT};

	if (line->fd < 0)
		return;
	if (!line->was_output)
		ioctl(line->fd, GPIO_V2_LINE_SET_CONFIG_IOCTL, &input);
	close(line->fd);
}

GPIO_WAY(cdev, "kernel's time stamp of the input edge", "response_kernel", true)
