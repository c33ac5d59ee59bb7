/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/types.h>

#ifndef KTIME_H
#define KTIME_H

typedef s64 ktime_t;

ktime_t ktime_get(void);
#define ktime_add_ns(time, ns) ((time) + (ns))
#define ktime_sub(later, earlier) ((later) - (earlier))
#define ktime_to_ns(time) (time)
#define ns_to_ktime(ns) (ns)
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L

#endif
