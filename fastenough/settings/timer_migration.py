# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether another CPU may hold the timers of an idle one."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "timer-migration",
    "1: timers of an idle CPU may go to a busy one; 0: they stay",
    "/proc/sys/kernel/timer_migration",
    0,
    1,
)
