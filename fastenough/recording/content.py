# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recording holds, once it has been read: its head, its intervals, its events, its end, and its totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fastenough.model import Outcome, Series
from fastenough.recording.head import End, Event, Head, Instant, LimitCount, LoadUse
from fastenough.recording.histogram import Histogram
from fastenough.recording.rises import Rises

_NOTHING: Mapping[int, Any] = MappingProxyType({})
"""One for all intervals: most recordings have neither rises nor limits."""


def _nothing() -> Mapping[int, Any]:
    return _NOTHING


@dataclass(frozen=True)
class Interval:
    """One interval: its bounds on both clocks, and per series id its histogram, losses, rises and count at a limit.

    ``order_unknown``: gaps in the order of a series' values.  ``load``: what the load did meanwhile.
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


@dataclass(frozen=True)
class Recording:
    """A whole recording.  ``end`` is None when it was cut off; its intervals are usable all the same.

    ``damage`` says why nothing of a recording is believed; it then holds no values (see :func:`unbelievable`).
    """

    head: Head
    intervals: tuple[Interval, ...]
    events: tuple[Event, ...]
    end: End | None
    cut_off: str | None = None
    totals: dict[int, Histogram] = field(default_factory=dict)
    damage: str | None = None

    @property
    def series(self) -> tuple[Series, ...]:
        return self.head.series

    @property
    def run_id(self) -> str:
        return self.head.run_id

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, None when the recording was cut off."""
        return None if self.end is None else self.end.outcome

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it did not complete, as far as its end says."""
        return () if self.end is None else self.end.reasons

    @property
    def duration_ns(self) -> int:
        """From the begin of the first to the end of the last interval, on CLOCK_MONOTONIC."""
        if not self.intervals:
            return 0
        return self.intervals[-1].end_mono_ns - self.intervals[0].begin_mono_ns

    @property
    def stopped(self) -> Instant:
        """Until when it reaches: the end of its last interval, its begin where it has none."""
        if not self.intervals:
            return self.head.begin
        return Instant(self.intervals[-1].end_mono_ns, self.intervals[-1].end_wall_ns)

    def named(self, name: str) -> tuple[Series, ...]:
        """All series of one name (one per CPU, as a rule)."""
        return tuple(series for series in self.series if series.name == name)

    def lost(self, series_id: int) -> int:
        return sum(interval.lost.get(series_id, 0) for interval in self.intervals)

    def missed(self, series_id: int) -> int:
        return sum(interval.missed.get(series_id, 0) for interval in self.intervals)

    def order_unknown(self, series_id: int) -> int:
        """Gaps in the order of a series' values."""
        return sum(interval.order_unknown.get(series_id, 0) for interval in self.intervals)

    def rises(self, series_id: int) -> Rises | None:
        """Of the whole run; None where the series has none."""
        parts = [interval.rises[series_id] for interval in self.intervals if series_id in interval.rises]
        return Rises.merged(parts, parts[0].k) if parts else None

    def limit(self, series_id: int) -> LimitCount | None:
        """What the series did at the limit given before the run; None where there was none."""
        parts = [interval.limits[series_id] for interval in self.intervals if series_id in interval.limits]
        total = parts[0] if parts else None
        for part in parts[1:]:
            assert total is not None
            total = total.plus(part)
        return total


def unbelievable(damage: str, head: Head) -> Recording:
    """What stands for a run of which nothing is believed, with the reason; ``head`` says what is known of it."""
    return Recording(head, (), (), None, damage=damage)
