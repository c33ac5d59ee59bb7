/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(waking_to_running)
{
	return between(wakeup->runnable_ns, wakeup->running_ns);
}
