/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where this process runs: in which control group, and on which CPUs the thread that calls. */
#ifndef PLACE_H
#define PLACE_H

#include <stdbool.h>

#include "options.h"

/* A group by its folder, or by its path below /sys/fs/cgroup.  An errno. */
int place_join(const char *cgroup);
/* Whether the group lists this process. */
bool place_joined(const char *cgroup);

/* An errno each. */
int place_on(const struct cpu_list *cpus);
int place_read(struct cpu_list *cpus);

#endif
