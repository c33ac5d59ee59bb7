# SPDX-License-Identifier: GPL-2.0-or-later
"""How often statistics of memory are gathered."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "stat-interval",
    "every so many seconds each CPU adds up its statistics of memory",
    "/proc/sys/vm/stat_interval",
    1,
    86400,
)
