# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of each second real-time tasks may take all together."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "rt-throttling",
    "µs of each period (1 s) that real-time tasks may run; -1 for all of it",
    "/proc/sys/kernel/sched_rt_runtime_us",
    -1,
    1_000_000_000,
)
