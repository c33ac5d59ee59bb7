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

/* The library passes times as it was built, this program passes them with 64 bits everywhere. */
_Static_assert(sizeof(time_t) == sizeof(long), "no probe for Xenomai on 32-bit processors");

#endif
