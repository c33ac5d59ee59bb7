/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the measured CPUs were slowed down while they were measured: by heat, or by a limit on their frequency. */
#ifndef FREQUENCY_H
#define FREQUENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "options.h"

struct frequency {
	const char *folder; /* of the CPUs, in /sys */
	struct cpu_list cpus;
	int64_t *most_khz; /* what each might run at when this was opened; 0: it has no such limit */
	bool throttles;    /* every CPU counted its throttles when this was opened */
	bool *packages;    /* and which of them those of their package: not every CPU has a sensor of it */
	int64_t looks_limited;
};

/* A file that is missing now is not looked for again: that would take a tenth of the reporter's time. */
void frequency_open(struct frequency *frequency, const char *folder, const struct cpu_list *cpus);
/* How often heat slowed one of them since the machine was started, and in how many of these looks one of them was
 * allowed less than at first; each only where every CPU tells. */
void frequency_count(struct frequency *frequency, struct counters *counters);

#endif
