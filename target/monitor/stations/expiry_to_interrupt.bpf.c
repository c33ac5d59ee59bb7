/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(expiry_to_interrupt)
{
	return between(wakeup->expiry_ns, wakeup->interrupt_ns);
}
