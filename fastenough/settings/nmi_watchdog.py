# SPDX-License-Identifier: GPL-2.0-or-later
"""The watchdog that nothing can mask."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "nmi-watchdog",
    "1: the watchdog in an interrupt that nothing masks is on; 0: off",
    "/proc/sys/kernel/nmi_watchdog",
    0,
    1,
)
