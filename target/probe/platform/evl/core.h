/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this platform share. */
#ifndef CORE_H
#define CORE_H

#include <evl/clock.h>
#include <evl/evl.h>
#include <evl/sched.h>
#include <evl/syscall.h>
#include <evl/thread.h>
#include <evl/timer.h>
#include <stdint.h>

/* What the library must leave to Linux when something is made or given back is no fault of the acts: what thread_strays()
 * told before is what it tells again. */
void thread_forgive(int64_t strays);

#endif
