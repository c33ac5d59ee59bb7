/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eventfd: from writing it to the reading thread going on. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pair.h"

static int fd;

static bool open_eventfd(struct run *run)
{
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		run_not_applicable(run, "eventfd(): %s", strerror(errno));
	return fd >= 0;
}

static void wake_waiter(struct pair *pair)
{
	uint64_t one = 1;

	pair_mark_sent(pair);
	if (write(fd, &one, sizeof(one)) != sizeof(one))
		return; /* the watch will tell */
}

static int64_t await_wake(uint64_t number)
{
	uint64_t count = 0;
	bool came = read(fd, &count, sizeof(count)) == sizeof(count);

	(void)number;
	return pair_time_of(came, count, 1);
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker reads the clock before write()",
	.to = "the waiter reads the clock after read() returned",
	.open = open_eventfd,
	.wake_on = wake_on,
	.wait_on = wait_on,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe eventfd_probe = {
	.name = "eventfd",
	.summary = "latency from writing an eventfd to the return of the reading thread",
	.options = pair_options,
	.setup = setup,
};
