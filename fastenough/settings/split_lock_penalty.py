# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a task that locks memory across cache lines is held."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "split-lock-penalty",
    "1: a task that locks memory across cache lines is held; 0: it is told",
    "/proc/sys/kernel/split_lock_mitigate",
    0,
    1,
)
