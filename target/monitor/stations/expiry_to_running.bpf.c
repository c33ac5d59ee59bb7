/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(expiry_to_running)
{
	return between(wakeup->expiry_ns, wakeup->running_ns);
}
