/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idle_states.h"

#include <stdio.h>

#include "counters.h"

/* How long leaving a state takes; false behind the last one. */
static bool exit_latency(const char *folder, int cpu, int64_t state, int64_t *us)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/cpu%d/cpuidle/state%lld/latency", folder, cpu, (long long)state);
	return read_number(path, us);
}

/* Of one CPU; INT64_MAX where it does not tell its states. */
static int64_t hold_of(const char *folder, int cpu, int64_t deepest)
{
	int64_t us, allowed_us = 0, below_us = INT64_MAX, state;

	for (state = 0; exit_latency(folder, cpu, state, &us); state++) {
		if (state <= deepest)
			allowed_us = us > allowed_us ? us : allowed_us;
		else if (us <= below_us)
			below_us = us - 1;
	}
	if (!state)
		return INT64_MAX;
	return allowed_us < below_us ? allowed_us : below_us < 0 ? 0 : below_us;
}

int64_t idle_states_hold_us(const char *folder, const struct cpu_list *cpus, int64_t deepest)
{
	int64_t least_us = INT64_MAX;

	for (int i = 0; i < cpus->count; i++) {
		int64_t us = hold_of(folder, cpus->cpu[i], deepest);

		least_us = us < least_us ? us : least_us;
	}
	return least_us == INT64_MAX ? -1 : least_us;
}

int64_t idle_states_deepest(const char *folder, const struct cpu_list *cpus, int64_t held_us)
{
	int64_t deepest = -1, us;

	for (int i = 0; i < cpus->count; i++)
		for (int64_t state = 0; exit_latency(folder, cpus->cpu[i], state, &us); state++)
			if (us <= held_us && state > deepest)
				deepest = state;
	return deepest;
}
