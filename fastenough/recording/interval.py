# SPDX-License-Identifier: GPL-2.0-or-later
"""One interval of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fastenough.recording.head import LimitCount, LoadUse
from fastenough.recording.histogram import Histogram
from fastenough.recording.rises import Rises

_NOTHING: Mapping[int, Any] = MappingProxyType({})
"""Shared by all intervals: most recordings have neither rises nor limits."""


def _nothing() -> Mapping[int, Any]:
    return _NOTHING


@dataclass(frozen=True)
class Interval:
    """One interval: its bounds on both clocks, and per series id its histogram, losses, rises and count at a limit.

    ``order_unknown``: gaps in the order of a series' values.  ``load``: resources used by the load.
    """

    seq: int
    begin_mono_ns: int
    end_mono_ns: int
    begin_wall_ns: int
    end_wall_ns: int
    histograms: dict[int, Histogram]
    lost: dict[int, int]
    missed: dict[int, int]
    counters: Mapping[str, int | None]
    rises: Mapping[int, Rises] = field(default_factory=_nothing)
    limits: Mapping[int, LimitCount] = field(default_factory=_nothing)
    order_unknown: Mapping[int, int] = field(default_factory=_nothing)
    load: LoadUse | None = None
