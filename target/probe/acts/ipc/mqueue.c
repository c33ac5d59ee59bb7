/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mqueue: from sending a POSIX message to the receiving thread having it. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

static mqd_t queue;

/* Deletes the name as soon as the queue is open, so that nothing remains, however the run ends. */
static bool open_queue(struct run *run)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof(uint64_t)};
	char name[64];

	snprintf(name, sizeof(name), "/fastenough-%ld", (long)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	if (queue == (mqd_t)-1) {
		run_not_applicable(run, "mq_open(): %s", strerror(errno));
		return false;
	}
	mq_unlink(name);
	return true;
}

static void wake_waiter(struct pair *pair)
{
	uint64_t message = pair->number;

	pair_mark_sent(pair);
	mq_send(queue, (const char *)&message, sizeof(message), 0);
}

static int64_t await_wake(uint64_t number)
{
	uint64_t message = 0;
	bool received = mq_receive(queue, (char *)&message, sizeof(message), NULL) == sizeof(message);

	return pair_time_of(received, message, number);
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "message",
	.from = "the waker reads the clock before mq_send()",
	.to = "the waiter reads the clock after mq_receive() returned the message",
	.open = open_queue,
	.wake_on = wake_on,
	.wait_on = wait_on,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe mqueue_probe = {
	.name = "mqueue",
	.summary = "latency from sending a POSIX message to its receipt by the waiting thread",
	.options = pair_options,
	.setup = setup,
};
