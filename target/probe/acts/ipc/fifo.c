/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fifo: transfer time through a pipe or a named FIFO, by the size of the blocks or of the pipe.
 *
 * Each value is the time of a whole transfer.  Each block is another piece of the pattern; the reader checks both ends of
 * every block during the transfer, and the whole last block afterwards.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "waiting.h"
#include "pattern.h"
#include "placement.h"
#include "watch.h"

#define KB 1024LL
#define MB (1024 * KB)

enum { BY_BLOCK, BY_PIPE };
static const char *const views[] = {"block", "pipe", NULL};

#define PIPE_OF_BLOCKS MB
#define BLOCK_OF_PIPES (8 * KB)
#define PROGRESS_STEP (64 * KB)

static const int64_t totals[] = {MB, 10 * MB};
static const int64_t block_sizes[] = {10, 100, KB, 2 * KB, 3 * KB, 4 * KB, 5 * KB, 6 * KB, 8 * KB, 9 * KB, 10 * KB, 100 * KB,
				      MB, 10 * MB, 100 * MB, 0};
static const int64_t pipe_sizes[] = {10, 100, KB, 4 * KB, 10 * KB, 64 * KB, 100 * KB, 256 * KB, MB, 10 * MB, 100 * MB, 0};

struct transfer {
	int64_t block, total, pipe;
	char block_text[24], pipe_text[24], reason[160];
	bool refused;
	struct series *series;
};

#define MOST_TRANSFERS 64

static struct {
	int view, channel, placement;
	int64_t largest;
} chosen = {.largest = 100 * MB};

static struct {
	struct transfer transfers[MOST_TRANSFERS];
	int count, possible;
	unsigned char *pattern, *received;
	/* The transfer under way. */
	struct transfer *transfer;
	struct channel channel;
	sem_t begun;
	uint64_t number; /* from 1 on */
	int64_t begin_ns;
	_Atomic uint64_t armed, done;
	struct watch watch;
} state = {.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .members = 2}};

static const struct option_spec fifo_options[] = {
	{"by", 0, OPTION_CHOICE, &chosen.view, .choices = views,
	 .help = "size of the blocks through a pipe of 1 MiB (block, the default),\n"
		 "                             or of the pipe, with blocks of 8 KiB (pipe)"},
	CHANNEL_OPTION(&chosen.channel),
	{"largest", 0, OPTION_INTEGER, &chosen.largest, .low = 16 * KB, .high = 1024 * MB,
	 .help = "leave out sizes of more bytes (104857600)"},
	PLACEMENT_OPTION(&chosen.placement, "same"),
	TIMEOUT_OPTION(state.watch),
	{0},
};

/*
 * Writer and reader ------------------------------------------------------------------------------
 */

static bool write_block(const struct worker *self, const unsigned char *block, int64_t size)
{
	while (size > 0) {
		ssize_t written = write(state.channel.write_fd, block, (size_t)size);

		if (written < 0 && (errno != EINTR || !run_is_active(self)))
			return false;
		if (written > 0) {
			block += written;
			size -= written;
		}
	}
	return true;
}

static bool read_block(const struct worker *self, unsigned char *block, int64_t size)
{
	while (size > 0) {
		ssize_t got = read(state.channel.read_fd, block, (size_t)size);

		if (got == 0 || (got < 0 && (errno != EINTR || !run_is_active(self))))
			return false;
		if (got > 0) {
			block += got;
			size -= got;
			watch_progress(&state.watch);
		}
	}
	return true;
}

static int64_t block_size(const struct transfer *transfer, int64_t done)
{
	int64_t left = transfer->total - done;

	return left < transfer->block ? left : transfer->block;
}

/*
 * On one CPU the reader runs only when the pipe is full, so the writer reports progress too, and checks whether the run
 * continues.  It does so only every PROGRESS_STEP bytes, because the counter is in the reader's cache.
 */
static bool goes_on(const struct worker *self, int64_t before, int64_t after)
{
	if (before / PROGRESS_STEP == after / PROGRESS_STEP)
		return true;
	watch_progress(&state.watch);
	return run_is_active(self);
}

static bool send_all(struct worker *self, const struct transfer *transfer)
{
	uint64_t block = state.number;

	state.begin_ns = mono_ns();
	for (int64_t done = 0; done < transfer->total; done += transfer->block)
		if (!write_block(self, pattern_block(state.pattern, block++), block_size(transfer, done)) ||
		    !goes_on(self, done, done + transfer->block))
			return false;
	return true;
}

static void wrong(struct worker *self, const struct transfer *transfer, int64_t done)
{
	run_fail(worker_run(self), "transfer %llu: the block at byte %lld of %lld is not the one that was sent",
		 (unsigned long long)state.number, (long long)done, (long long)transfer->total);
}

/* The time at which the last byte had arrived; 0 if the run ended or failed before. */
static int64_t receive_all(struct worker *self, const struct transfer *transfer)
{
	const unsigned char *right = NULL;
	uint64_t block = state.number;
	int64_t size = 0, end_ns;

	for (int64_t done = 0; done < transfer->total; done += transfer->block) {
		size = block_size(transfer, done);
		if (!read_block(self, state.received, size))
			return 0;
		right = pattern_block(state.pattern, block++);
		if (!pattern_ends_match(state.received, right, (size_t)size)) {
			wrong(self, transfer, done);
			return 0;
		}
	}
	end_ns = mono_ns();
	if (memcmp(state.received, right, (size_t)size)) {
		wrong(self, transfer, transfer->total - size);
		return 0;
	}
	return end_ns;
}

static bool transfer_once(struct worker *self, struct transfer *transfer)
{
	bool going;

	if (!channel_open(&state.channel, chosen.channel, transfer->pipe, transfer->reason, sizeof(transfer->reason))) {
		run_fail(worker_run(self), "granted before, refused now: %s", transfer->reason);
		return false;
	}
	state.transfer = transfer;
	state.number++;
	sem_post(&state.begun);
	going = await_count(self, &state.armed, state.number, 0) && send_all(self, transfer) &&
		await_count(self, &state.done, state.number, 0);
	if (going) {
		channel_close(&state.channel);
		rest_since(state.begin_ns, state.watch.timeout_ns);
	}
	return going;
}

static void writer(struct worker *self, void *argument)
{
	bool going = true;

	(void)argument;
	for (int i = 0; going; i = (i + 1) % state.count)
		if (!state.transfers[i].refused)
			going = run_continues(self) && transfer_once(self, &state.transfers[i]);
	run_finish(worker_run(self));
	watch_leave(&state.watch);
}

static void reader(struct worker *self, void *argument)
{
	int64_t end_ns;

	(void)argument;
	while (run_is_active(self)) {
		if (sem_wait(&state.begun))
			continue;
		atomic_store(&state.armed, state.number);
		end_ns = receive_all(self, state.transfer);
		if (!end_ns)
			break;
		series_add(state.transfer->series, end_ns - state.begin_ns);
		atomic_store(&state.done, state.number);
	}
	watch_leave(&state.watch);
}

/*
 * Setup ------------------------------------------------------------------------------------------
 */

static void try_pipe(struct transfer *transfer)
{
	struct channel channel;

	transfer->refused = !channel_open(&channel, chosen.channel, transfer->pipe, transfer->reason, sizeof(transfer->reason));
	snprintf(transfer->pipe_text, sizeof(transfer->pipe_text), "%lld", (long long)transfer->pipe);
	if (!transfer->refused)
		channel_close(&channel);
}

static void add_transfer(struct run *run, int cpu, int64_t block, int64_t pipe, int64_t total)
{
	struct transfer *transfer = &state.transfers[state.count++];

	*transfer = (struct transfer){.block = block, .total = total, .pipe = pipe};
	try_pipe(transfer);
	snprintf(transfer->block_text, sizeof(transfer->block_text), "%lld", (long long)block);
	state.possible += !transfer->refused;
	transfer->series = run_add_series(run, &(struct series_spec){
		.name = "transfer",
		.from = "the writer reads the clock before its first write()",
		.to = "the reader reads the clock after the last byte was read",
		.cpu = cpu,
		.bytes = total,
		.role = SERIES_THROUGHPUT,
		.refused = transfer->refused ? transfer->reason : NULL,
		.labels = {{"by", views[chosen.view]}, {"block", transfer->block_text}, {"pipe", transfer->pipe_text},
			   {"channel", channel_names[chosen.channel]}}});
}

/* A block larger than both totals is transferred once. */
static void add_blocks(struct run *run, int cpu)
{
	for (const int64_t *block = block_sizes; *block && *block <= chosen.largest; block++) {
		for (int i = 0; i < 2; i++)
			if (*block <= totals[i])
				add_transfer(run, cpu, *block, PIPE_OF_BLOCKS, totals[i]);
		if (*block > totals[1])
			add_transfer(run, cpu, *block, PIPE_OF_BLOCKS, *block);
	}
}

static void add_pipes(struct run *run, int cpu)
{
	for (const int64_t *pipe = pipe_sizes; *pipe && *pipe <= chosen.largest; pipe++)
		for (int i = 0; i < 2; i++)
			add_transfer(run, cpu, BLOCK_OF_PIPES, *pipe, totals[i]);
}

static void setup(struct run *run)
{
	int64_t largest = BLOCK_OF_PIPES;
	struct cpu_pair cpus;

	if (!placement_find(run, chosen.placement, &cpus))
		return;
	run_parameter_text(run, "by", views[chosen.view]);
	run_parameter_text(run, "channel", channel_names[chosen.channel]);
	run_parameter_int(run, "largest", chosen.largest);
	(chosen.view == BY_BLOCK ? add_blocks : add_pipes)(run, cpus.second);
	if (!state.possible) {
		run_not_applicable(run, "%s", state.transfers[0].reason);
		return;
	}
	for (int i = 0; i < state.count; i++)
		if (state.transfers[i].block > largest)
			largest = state.transfers[i].block;
	state.pattern = pattern_new(run, (size_t)largest);
	state.received = run_allocate(run, (size_t)largest);
	sem_init(&state.begun, 0, 0);
	run_add_worker(run, &(struct worker_spec){.name = "writer", .cpu = cpus.first, .function = writer});
	run_add_worker(run, &(struct worker_spec){.name = "reader", .cpu = cpus.second, .function = reader});
	watch_add(run, &state.watch);
}

const struct probe fifo_probe = {
	.name = "fifo",
	.summary = "transfer time through a pipe or FIFO, by size of blocks or pipe",
	.options = fifo_options,
	.setup = setup,
};
