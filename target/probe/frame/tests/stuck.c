/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A probe that misbehaves as badly as one can: its thread never sleeps and never looks whether to stop. */
#include "registry.h"

static void stuck_worker(struct worker *self, void *argument)
{
	struct series *series = argument;
	int64_t last_ns = mono_ns();

	(void)self;
	for (;;) {
		int64_t now_ns = mono_ns();

		series_add(series, now_ns - last_ns);
		last_ns = now_ns;
	}
}

static void stuck_setup(struct run *run)
{
	int cpu = run_cpu(run, 0);
	struct series *series = run_add_series(run, &(struct series_spec){
		.name = "gap", .from = "a reading of the clock", .to = "the next", .cpu = cpu});

	run_add_worker(run, &(struct worker_spec){.name = "stuck", .cpu = cpu, .function = stuck_worker, .argument = series});
}

static const struct probe stuck_probe = {
	.name = "stuck",
	.summary = "never sleeps, never stops",
	.setup = stuck_setup,
};

const struct probe *const probes[] = {
	&stuck_probe,
	NULL,
};
