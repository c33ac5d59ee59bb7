/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The idle states of CPUs, as cpuidle numbers them: 0 is the shallowest. */
#ifndef IDLE_STATES_H
#define IDLE_STATES_H

#include <stdint.h>

#include "options.h"

/* The greatest wake-up latency limit that prevents all of these CPUs from entering states deeper than `deepest` (-1: any
 * state); -1 if no CPU reports its states.  `folder`: the directory of the CPUs in /sys. */
int64_t idle_states_hold_us(const char *folder, const struct cpu_list *cpus, int64_t deepest);
/* The deepest state that one of them may enter with this limit; -1: none. */
int64_t idle_states_deepest(const char *folder, const struct cpu_list *cpus, int64_t held_us);

#endif
