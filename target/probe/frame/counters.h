/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of system activity; one that is unreadable or untrustworthy is unknown. */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

enum counter {
	COUNTER_STEAL_NS,
	COUNTER_SMI,
	COUNTER_CLOCK_STEP_NS,
	COUNTER_CLOCK_SETS,
	COUNTER_SUSPENDED_NS,
	COUNTER_MAJOR_FAULTS,
	COUNTER_MINOR_FAULTS,
	COUNTER_VOLUNTARY_SWITCHES,
	COUNTER_INVOLUNTARY_SWITCHES,
	COUNTER_MIGRATIONS,
	COUNTER_THROTTLED,
	COUNTER_CGROUP_THROTTLED,
	COUNTER_THERMAL_THROTTLED,
	COUNTER_FREQUENCY_LIMITED,
	COUNTER_LEAST_IDLE_NS,
	COUNTER_MOST_IDLE_NS,
	COUNTERS
};
extern const char *const counter_names[COUNTERS];

struct counters {
	int64_t value[COUNTERS];
	bool known[COUNTERS];
};

/* Of all readings so far. */
struct counters_seen {
	struct counters last;
	bool lost[COUNTERS];
};

void counter_set(struct counters *counters, enum counter counter, int64_t value);
/* A counter that decreased (a CPU was unplugged, or it was reset) or was unreadable once is unknown from then on: its
 * differences are meaningless, and may look plausible later. */
void counters_trust(struct counters_seen *seen, struct counters *now);
struct counters counters_since(const struct counters *now, const struct counters *then);

/* Whole number in a one-line file such as those in /proc/sys; false if it cannot be read. */
bool read_number(const char *path, int64_t *value);

#endif
