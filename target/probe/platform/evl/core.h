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

#endif
