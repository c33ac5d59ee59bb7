/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(expiry_to_interrupt)
{
	return wakeup->origin == ORIGIN_TIMER ? between(wakeup->expiry_ns, wakeup->interrupt_ns) : NO_VALUE;
}
