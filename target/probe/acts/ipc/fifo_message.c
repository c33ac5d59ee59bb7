/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fifo-message: from writing one message to a pipe or named FIFO to the reading thread having it. */
#include <unistd.h>

#include "channel.h"
#include "pair.h"

static int kind;
static struct channel channel;

static const struct option_spec options[] = {CHANNEL_OPTION(&kind), PAIR_OPTIONS, {0}};

static bool open_channel(struct run *run)
{
	char reason[160];

	if (channel_open(&channel, kind, 0, reason, sizeof(reason)))
		return true;
	run_not_applicable(run, "%s", reason);
	return false;
}

static void wake_waiter(struct pair *pair)
{
	uint64_t message = pair->number;

	pair_mark_sent(pair);
	if (write(channel.write_fd, &message, sizeof(message)) != sizeof(message))
		return; /* the watch will tell */
}

static int64_t await_wake(uint64_t number)
{
	uint64_t message = 0;
	bool received = read(channel.read_fd, &message, sizeof(message)) == sizeof(message);

	return pair_time_of(received, message, number);
}

PAIR_LOOPS(wake_waiter, await_wake)

static const struct pair_act act = {
	.series = "message",
	.from = "the waker reads the clock before write() of 8 bytes",
	.to = "the waiter reads the clock after read() returned them",
	.open = open_channel,
	.wake_on = wake_on,
	.wait_on = wait_on,
};

static void setup(struct run *run)
{
	run_parameter_text(run, "channel", channel_names[kind]);
	pair_setup(run, &act);
}

const struct probe fifo_message_probe = {
	.name = "fifo-message",
	.summary = "latency of one message through a pipe or FIFO to the reading thread",
	.options = options,
	.setup = setup,
};
