/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutexes of either protocol, and handing one over to the thread that waits for it. */
#ifndef CONTENDED_H
#define CONTENDED_H

#include <pthread.h>

#include "frame.h"

/* False after run_not_applicable(): the system has no such mutexes. */
bool mutex_create(struct run *run, pthread_mutex_t *mutex, int protocol);

/* The probe of a contested mutex with this protocol, PTHREAD_PRIO_*. */
void contended_setup(struct run *run, int protocol);

#endif
