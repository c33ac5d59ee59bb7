/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A probe each of whose values is a new maximum: bursts of a hundred, which no ring of events can hold. */
#include <time.h>

#include "registry.h"

#define BURST 100
#define APART_NS (5 * NS_PER_MS)

static void rising_worker(struct worker *self, void *argument)
{
	struct series *series = argument;
	int64_t value = 0;

	while (run_continues(self)) {
		for (int i = 0; i < BURST; i++)
			series_add(series, ++value);
		nanosleep(&(struct timespec){.tv_nsec = APART_NS}, NULL);
	}
}

static void rising_setup(struct run *run)
{
	int cpu = run_cpu(run, 0);
	struct series *series = run_add_series(run, &(struct series_spec){
		.name = "count", .from = "nothing", .to = "a value", .cpu = cpu});

	run_add_worker(run, &(struct worker_spec){.name = "rising", .cpu = cpu, .function = rising_worker, .argument = series});
}

static const struct probe rising_probe = {
	.name = "rising",
	.summary = "one new maximum after the other",
	.setup = rising_setup,
};

const struct probe *const probes[] = {
	&rising_probe,
	NULL,
};
