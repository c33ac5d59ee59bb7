/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libc.h"
#include "machine.h"

const char *const channel_names[] = {"pipe", "named", NULL};

/* Opens the reading end without waiting for the writing end, then makes it blocking. */
static bool open_ends(const char *path, int fds[2])
{
	fds[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fds[0] < 0)
		return false;
	fds[1] = open(path, O_WRONLY | O_CLOEXEC);
	if (fds[1] < 0) {
		close(fds[0]);
		return false;
	}
	fcntl(fds[0], F_SETFL, 0);
	return true;
}

/* Deletes the name as soon as both ends are open, so that nothing remains, however the run ends. */
static bool open_named(int fds[2])
{
	const char *parent = getenv("TMPDIR");
	char folder[PATH_MAX - 8], path[PATH_MAX];
	bool opened;

	snprintf(folder, sizeof(folder), "%s/fastenough-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(folder))
		return false;
	snprintf(path, sizeof(path), "%s/fifo", folder);
	opened = mkfifo(path, 0600) == 0 && open_ends(path, fds);
	unlink(path);
	rmdir(folder);
	return opened;
}

static void explain_size(int64_t size, char *reason, size_t room)
{
	int error = errno;
	int64_t most = 0;

	read_number("/proc/sys/fs/pipe-max-size", &most);
	snprintf(reason, room, "F_SETPIPE_SZ to %lld bytes: %s (%s); /proc/sys/fs/pipe-max-size is %lld", (long long)size,
		 strerror(error), error_name(error), (long long)most);
}

bool channel_open(struct channel *channel, int kind, int64_t size, char *reason, size_t room)
{
	int fds[2];

	if (kind == CHANNEL_NAMED ? !open_named(fds) : pipe2(fds, O_CLOEXEC) != 0) {
		snprintf(reason, room, "no %s: %s (%s)", kind == CHANNEL_NAMED ? "named FIFO" : "pipe", strerror(errno),
			 error_name(errno));
		return false;
	}
	*channel = (struct channel){fds[0], fds[1], 0};
	if (size && fcntl(fds[1], F_SETPIPE_SZ, (int)size) < 0) {
		explain_size(size, reason, room);
		channel_close(channel);
		return false;
	}
	channel->size = fcntl(fds[1], F_GETPIPE_SZ);
	return true;
}

void channel_close(struct channel *channel)
{
	close(channel->read_fd);
	close(channel->write_fd);
}
