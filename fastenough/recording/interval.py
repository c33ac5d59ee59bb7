# SPDX-License-Identifier: GPL-2.0-or-later
"""One interval of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastenough.recording.histogram import Histogram


@dataclass(frozen=True)
class Interval:
    """One interval: its bounds on both clocks, and per series id its histogram and losses."""

    seq: int
    begin_mono_ns: int
    end_mono_ns: int
    begin_wall_ns: int
    end_wall_ns: int
    histograms: dict[int, Histogram]
    lost: dict[int, int]
    missed: dict[int, int]
    counters: dict[str, Any]
