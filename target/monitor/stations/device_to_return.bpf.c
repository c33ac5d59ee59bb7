/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(device_to_return)
{
	return wakeup->origin == ORIGIN_DEVICE ? between(wakeup->interrupt_ns, wakeup->return_ns) : NO_VALUE;
}
