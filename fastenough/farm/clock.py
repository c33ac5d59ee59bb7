# SPDX-License-Identifier: GPL-2.0-or-later
"""The wall clock of the bench, which people and NTP set, sometimes by hours."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_SET_S = 1.0
"""A clock that is only kept right by NTP's slewing never moves by so much between two readings."""


@dataclass
class Clock:
    """Seconds since 1970, and by how much they were set: the clock that nobody sets went on by less, or more."""

    wall_s: Callable[[], float] = time.time
    steady_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._ahead_s = self.wall_s() - self.steady_s()

    def read(self) -> tuple[float, float]:
        """What time it is, and by how much the clock was set since it was read last; 0 where it only ran on."""
        now_s = self.wall_s()
        ahead_s = now_s - self.steady_s()
        was_set_s = ahead_s - self._ahead_s
        self._ahead_s = ahead_s
        return now_s, was_set_s if abs(was_set_s) >= _SET_S else 0.0
