/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutexes with and without priority inheritance, and the probe of a contended one. */
#ifndef CONTENDED_H
#define CONTENDED_H

#include "frame.h"
#include "sync.h"

/* False after run_not_applicable(): the system has no such mutexes. */
bool mutex_create(struct run *run, sync_mutex *mutex, bool inherits);

/* Sets up the probe of a contended mutex. */
void contended_setup(struct run *run, bool inherits);

#endif
