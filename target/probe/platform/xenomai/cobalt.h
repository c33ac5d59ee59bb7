/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls of Cobalt's POSIX skin by their own names: __RT(call()). */
#ifndef COBALT_H
#define COBALT_H

#include <cobalt/fcntl.h>
#include <cobalt/pthread.h>
#include <cobalt/sched.h>
#include <cobalt/signal.h>
#include <cobalt/sys/cobalt.h>
#include <cobalt/sys/ioctl.h>
#include <cobalt/sys/timerfd.h>
#include <cobalt/time.h>
#include <cobalt/unistd.h>
#include <stdint.h>

/* The library passes times as it was built, this program passes them with 64 bits everywhere. */
_Static_assert(sizeof(time_t) == sizeof(long), "no probe for Xenomai on 32-bit processors");

/* What the library must leave to Linux when something is made or given back is no fault of the acts: what thread_strays()
 * told before is what it tells again. */
void thread_forgive(int64_t strays);

#endif
