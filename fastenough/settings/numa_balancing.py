# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the kernel moves memory to the node that uses it."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "numa-balancing",
    "1: the kernel moves memory to the node that uses it; 0: it does not",
    "/proc/sys/kernel/numa_balancing",
    0,
    1,
)
