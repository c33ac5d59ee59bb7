/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU hotplug during a run. */
#ifndef ONLINE_H
#define ONLINE_H

#include "run.h"

/* Stores the CPUs that are online at the begin. */
void online_begin(struct run *run);
/* After each interval: reports changed CPUs, and ends a run in a ring, whose service restarts it with the current CPUs. */
void online_check(struct run *run);

#endif
