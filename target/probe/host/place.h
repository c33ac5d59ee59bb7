/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control group of this process, and CPU affinity of the calling thread. */
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
