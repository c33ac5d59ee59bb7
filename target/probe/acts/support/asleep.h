/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether another thread sleeps: one that does not cannot be woken, and to find it awake is no waking. */
#ifndef ASLEEP_H
#define ASLEEP_H

#include <sys/types.h>

#include "frame.h"

/* Opens what tells it of a thread of this process; -1 with errno where it cannot be told. */
int asleep_open(pid_t thread);

/* Until it sleeps, so that a signal would end it; false when the run ends. */
bool asleep_await(const struct worker *self, int fd);

#endif
