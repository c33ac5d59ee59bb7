/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Throttling of the measured CPUs during the run, by heat or by a frequency limit. */
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

/* Files that are missing now are not read later: trying would take a tenth of the reporter's time. */
void frequency_open(struct frequency *frequency, const char *folder, const struct cpu_list *cpus);
/* Counts thermal throttling events since boot, and calls in which the limit of a CPU was lower than at first; each is known
 * only if all CPUs report it. */
void frequency_count(struct frequency *frequency, struct counters *counters);

#endif
