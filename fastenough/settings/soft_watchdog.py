# SPDX-License-Identifier: GPL-2.0-or-later
"""The watchdog in a timer of each CPU."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "soft-watchdog", "1: the watchdog in a timer of each CPU is on; 0: off", "/proc/sys/kernel/soft_watchdog", 0, 1
)
