/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutexes of either protocol, and handing one over to the thread that waits for it. */
#ifndef CONTENDED_H
#define CONTENDED_H

#include "frame.h"
#include "sync.h"

/* False after run_not_applicable(): the system has no such mutexes. */
bool mutex_create(struct run *run, sync_mutex *mutex, bool inherits);

/* The probe of a contested mutex, with priority inheritance or without. */
void contended_setup(struct run *run, bool inherits);

#endif
