/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The idle states of CPUs, as cpuidle numbers them: 0 is the shallowest. */
#ifndef IDLE_STATES_H
#define IDLE_STATES_H

#include <stdint.h>

#include "options.h"

/* The longest wake-up to be held that keeps all of these CPUs out of every state deeper than `deepest` (-1: out of all);
 * -1 where no CPU tells its states.  `folder`: that of the CPUs, in /sys. */
int64_t idle_states_hold_us(const char *folder, const struct cpu_list *cpus, int64_t deepest);
/* The deepest state that one of them may enter while a wake-up may take so long; -1: none. */
int64_t idle_states_deepest(const char *folder, const struct cpu_list *cpus, int64_t held_us);

#endif
