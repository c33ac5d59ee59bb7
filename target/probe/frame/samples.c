/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "samples.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#define BLOCK_SAMPLES 4096u /* samples in one write */
/* Draining costs as much for few samples as for many. */
#define LONGEST_DRAIN_PERIOD_NS NS_PER_S
#define RING_SHARE 4
#define END_SERIES UINT32_MAX

/* All numbers in the file are little-endian. */
struct file_head {
	char magic[8];
	uint32_t version, sample_size;
};

struct block_head {
	uint32_t series, count;
	uint64_t lost; /* of this series, since its previous block; the due times show where */
};

struct block {
	struct block_head head;
	struct sample samples[BLOCK_SAMPLES];
};

static void write_whole(struct run *run, const void *memory, size_t size)
{
	int error = 0;

	if (run->samples_fd < 0)
		return;
	output_write(run->samples_fd, memory, size, &error);
	if (!error)
		return;
	run_write_failed(run, "the samples file", error);
	close(run->samples_fd);
	run->samples_fd = -1;
}

void samples_open(struct run *run)
{
	const char *path = run->samples_path;
	struct file_head head = {.magic = "FESAMPLE", .version = htole32(1), .sample_size = htole32(sizeof(struct sample))};

	if (!path)
		return;
	run->samples_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (run->samples_fd < 0)
		bad_input("cannot create the samples file %s: %s; name a new file in a writable folder", path,
			  strerror(errno));
	write_whole(run, &head, sizeof(head));
}

struct samples *samples_new(struct run *run, int series)
{
	struct samples *samples = run_allocate(run, sizeof(*samples));

	samples->series = series;
	samples->block = run_allocate(run, sizeof(*samples->block));
	samples->next = run->samples;
	run->samples = samples;
	return samples;
}

static void write_block(struct run *run, struct samples *samples, uint32_t read, uint32_t count)
{
	uint32_t lost = atomic_load_explicit(&samples->lost, memory_order_relaxed);
	struct block *block = samples->block;

	block->head = (struct block_head){htole32((uint32_t)samples->series), htole32(count), htole64((uint64_t)(lost - samples->lost_written))};
	for (uint32_t i = 0; i < count; i++) {
		const struct sample *sample = &samples->ring[(read + i) % SAMPLES_RING];

		block->samples[i] = (struct sample){(int64_t)htole64((uint64_t)sample->due_ns),
						    (int64_t)htole64((uint64_t)sample->latency_ns)};
	}
	write_whole(run, block, sizeof(block->head) + count * sizeof(struct sample));
	if (run->samples_fd >= 0)
		samples->written_total += count;
	else
		samples->lost_total += count;
	samples->lost_total += lost - samples->lost_written;
	samples->lost_written = lost;
}

static void drain(struct run *run, struct samples *samples)
{
	uint32_t read = atomic_load_explicit(&samples->read, memory_order_relaxed);
	uint32_t written = atomic_load_explicit(&samples->written, memory_order_acquire);

	while (read != written) {
		uint32_t count = written - read < BLOCK_SAMPLES ? written - read : BLOCK_SAMPLES;

		write_block(run, samples, read, count);
		read += count;
		atomic_store_explicit(&samples->read, read, memory_order_release);
	}
}

int64_t samples_drain_period_ns(const struct run *run)
{
	int64_t share_ns = run->settings->interval_ns * (SAMPLES_RING / RING_SHARE);

	return share_ns < LONGEST_DRAIN_PERIOD_NS ? share_ns : LONGEST_DRAIN_PERIOD_NS;
}

void samples_drain(struct run *run)
{
	for (struct samples *samples = run->samples; samples; samples = samples->next)
		drain(run, samples);
}

/* The end mark distinguishes a complete file from a truncated one. */
void samples_close(struct run *run)
{
	struct block_head end = {.series = htole32(END_SERIES)};

	if (!run->samples)
		return;
	samples_drain(run);
	for (struct samples *samples = run->samples; samples; samples = samples->next)
		if (atomic_load(&samples->lost) != samples->lost_written)
			write_block(run, samples, 0, 0);
	write_whole(run, &end, sizeof(end));
	if (run->samples_fd >= 0)
		close(run->samples_fd);
	run->samples_fd = -1;
}
