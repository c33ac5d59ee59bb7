/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shm: transfer time from a real-time thread to a normal process through shared memory, by size. */
#include <stdio.h>

#include "waiting.h"
#include "placement.h"
#include "shared.h"
#include "watch.h"

#define KB 1024LL
#define MB (1024 * KB)

/* Duration of a burst of hand-overs of one size; at least one. */
#define BURST_NS (2 * NS_PER_MS)

static const int64_t sizes[] = {10, 100, KB, 10 * KB, 100 * KB, 200 * KB, 300 * KB, 400 * KB, 600 * KB, 800 * KB,
				MB, 2 * MB, 3 * MB, 4 * MB, 5 * MB, 6 * MB, 7 * MB, 8 * MB, 9 * MB, 10 * MB};
#define SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

static struct {
	int placement;
	int64_t largest;
} chosen = {.placement = PLACEMENT_CORE, .largest = 10 * MB};

static struct {
	struct shared *shared;
	int count;
	struct series *series[SIZES];
	char texts[SIZES][24];
	struct watch watch;
} state = {.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .members = 1, .check = shared_check, .finish = shared_finish}};

static const struct option_spec shm_options[] = {
	{"largest", 0, OPTION_INTEGER, &chosen.largest, .low = 10, .high = 10 * MB,
	 .help = "leave out sizes of more bytes (10485760)"},
	PLACEMENT_OPTION(&chosen.placement, "core"),
	TIMEOUT_OPTION(state.watch),
	{0},
};

static bool send_burst(struct worker *self, int index)
{
	int64_t burst_begin_ns = mono_ns(), begin_ns, read_ns;

	do {
		if (!run_continues(self) || !shared_send(self, state.shared, (size_t)sizes[index], &begin_ns, &read_ns))
			return false;
		series_add(state.series[index], read_ns - begin_ns);
		watch_progress(&state.watch);
	} while (mono_ns() - burst_begin_ns < BURST_NS);
	rest_since(burst_begin_ns, state.watch.timeout_ns);
	return true;
}

static void writer(struct worker *self, void *argument)
{
	(void)argument;
	for (int i = 0; send_burst(self, i); i = (i + 1) % state.count)
		;
	run_finish(worker_run(self));
	watch_leave(&state.watch);
}

static void add_size(struct run *run, int index, int cpu)
{
	snprintf(state.texts[index], sizeof(state.texts[index]), "%lld", (long long)sizes[index]);
	state.series[index] = run_add_series(run, &(struct series_spec){
		.name = "handover",
		.from = "the real-time thread reads the clock before writing the first byte of a block",
		.to = "the normal process reads the clock after copying the last byte out",
		.cpu = cpu,
		.bytes = sizes[index],
		.role = SERIES_THROUGHPUT,
		.labels = {{"size", state.texts[index]}, {"placement", placement_names[chosen.placement]}}});
}

static void setup(struct run *run)
{
	struct cpu_pair cpus;

	if (!placement_find(run, chosen.placement, &cpus))
		return;
	run_parameter_int(run, "largest", chosen.largest);
	for (state.count = 0; state.count < SIZES && sizes[state.count] <= chosen.largest; state.count++)
		add_size(run, state.count, cpus.second);
	state.shared = shared_new(run, (size_t)sizes[state.count - 1], cpus.second, cpus.first == cpus.second);
	run_add_worker(run, &(struct worker_spec){.name = "writer", .cpu = cpus.first, .function = writer});
	watch_add(run, &state.watch);
}

const struct probe shm_probe = {
	.name = "shm",
	.summary = "transfer time from a real-time thread to a normal process through shared memory",
	.options = shm_options,
	.setup = setup,
};
