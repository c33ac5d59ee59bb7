/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(device_to_runnable)
{
	return between(wakeup->interrupt_ns, wakeup->runnable_ns);
}
