/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(running_to_return)
{
	return between(wakeup->running_ns, wakeup->return_ns);
}
