/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For stations: a station computes its value from a complete wake-up of its origin.
 *
 *	#include "station.h"
 *
 *	WAKEUP_STATION(expiry_to_interrupt)
 *	{
 *		return between(wakeup->expiry_ns, wakeup->interrupt_ns);
 *	}
 */
#ifndef STATION_H
#define STATION_H

#include "kernel.h"
#include "monitor.h"

#define NO_VALUE -1

#define WAKEUP_STATION(NAME) \
	__hidden s64 NAME(const struct wakeup *wakeup); \
	__hidden s64 NAME(const struct wakeup *wakeup)

/* Time between two instants of a wake-up; NO_VALUE if one of them is missing. */
static __always_inline s64 between(u64 from_ns, u64 to_ns)
{
	return from_ns && to_ns ? (s64)(to_ns - from_ns) : NO_VALUE;
}

#endif
