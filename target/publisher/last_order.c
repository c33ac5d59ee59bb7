/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "last_order.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json_scan.h"

#define MAX_TEXT 32

bool last_order_read(const char *path, int64_t *issued_us)
{
	int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[MAX_TEXT];
	ssize_t size;

	*issued_us = 0;
	if (file < 0)
		return errno == ENOENT;
	size = read(file, text, sizeof(text));
	close(file);
	if (size < 0)
		return false;
	errno = EBADMSG;
	return size && text[size - 1] == '\n' && json_count(&(struct json_value){text, (size_t)size - 1}, INT64_MAX, issued_us);
}

static bool write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t size = strlen(text);
	bool written;

	if (file < 0)
		return false;
	written = write(file, text, size) == (ssize_t)size && !fsync(file);
	return !close(file) && written;
}

/* So that the new name survives a power failure. */
static bool sync_folder(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	bool synced;
	int file;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file < 0)
		return false;
	synced = !fsync(file);
	return !close(file) && synced;
}

bool last_order_write(const char *path, int64_t issued_us)
{
	char text[MAX_TEXT], new_path[PATH_MAX];

	if (snprintf(new_path, sizeof(new_path), "%s.new", path) >= (int)sizeof(new_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	snprintf(text, sizeof(text), "%" PRId64 "\n", issued_us);
	return write_file(new_path, text) && !rename(new_path, path) && sync_folder(path);
}
