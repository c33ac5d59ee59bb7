/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a platform with a real-time core beside Linux shares with the others of its kind. */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

#include "thread.h"

/* The platform's own: how often the core says that it lost the calling thread to Linux; -1 where it does not tell. */
int64_t core_thread_strays(void);
/* What must be left to Linux when something is made or given back is no fault of the acts: what thread_strays() told before
 * is what it tells again. */
void core_thread_forgive(int64_t strays);

#endif
