/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a platform's thread.c may use where its threads are those of the C library; thread_create() and thread_id() are there
 * too. */
#ifndef POSIX_THREAD_H
#define POSIX_THREAD_H

#include "thread.h"

/* The calling thread stays on that CPU; below 0: on any. */
void posix_thread_stay(int cpu, struct thread_state *state);
/* Reads back on which CPUs a thread may be; 0: the calling one. */
void posix_thread_where(pid_t thread, struct thread_state *state);

#endif
