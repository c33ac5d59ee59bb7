/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every wake-up by a timer kept: from the programs' ring into the frame's, one for each station and CPU. */
#include "inside.h"

void keep_samples(struct monitor *monitor, const char *path)
{
	unsigned count = monitor->cpus * STATIONS;

	run_keep_samples(monitor->run, path);
	monitor->samples = run_allocate(monitor->run, count * sizeof(*monitor->samples));
	for (unsigned i = 0; i < count; i++)
		if (monitor->series[i])
			monitor->samples[i] = run_add_samples(monitor->run, monitor->series[i]);
}

int keep_one(void *context, void *content, size_t size)
{
	const struct monitor *monitor = context;
	const struct kept *kept = content;

	if (size < sizeof(*kept) || !monitor->samples || kept->cpu >= monitor->cpus)
		return 0;
	for (unsigned station = 0; station < STATIONS; station++) {
		struct samples *samples = monitor->samples[kept->cpu * STATIONS + station];

		if (samples && kept->values[station] >= 0)
			samples_keep(samples, (int64_t)kept->expiry_ns, kept->values[station]);
	}
	return 0;
}
