/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "asleep.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "patience.h"

#define STATE_SIZE 64 /* number, name and state stand at the beginning */

int asleep_open(pid_t thread)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool asleep(int fd)
{
	char text[STATE_SIZE];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	const char *name_end;

	if (length <= 0)
		return false;
	text[length] = '\0';
	name_end = strrchr(text, ')');
	return name_end && !strncmp(name_end, ") S", 3);
}

bool asleep_await(const struct worker *self, int fd)
{
	while (!asleep(fd)) {
		if (!run_going(self))
			return false;
		nap(20 * NS_PER_US);
	}
	return true;
}
