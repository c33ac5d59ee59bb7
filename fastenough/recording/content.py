# SPDX-License-Identifier: GPL-2.0-or-later
"""The content of a recording: head, intervals, events, end and totals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TypeVar, overload

import numpy as np

from fastenough.model import Outcome, Series
from fastenough.recording.aggregate import Aggregate
from fastenough.recording.head import End, Event, Head, Instant, LimitCount, SeriesEnd
from fastenough.recording.histogram import Histogram
from fastenough.recording.interval import Interval
from fastenough.recording.rises import Rises
from fastenough.recording.timeline import Timeline

TRACE_FILE = "trace.txt.zst"
"""Trace of the kernel before the value that ended the run, as printed by tracefs."""
COSTS_FILE = "costs.csv.zst"
"""What the cost model of a deterministic board counted: a line for each wake-up, as its plugin writes it."""


def total_of(totals: SeriesEnd) -> Histogram | None:
    """The histogram of a series in the end line; None if it has none because the intervals are as fine."""
    if totals.k is None:
        return None
    index, count = (np.asarray(numbers, dtype=np.int64) for numbers in totals.buckets)
    return Histogram(totals.k, index, count, totals.minimum, totals.maximum, totals.sum, totals.sum_sq)


@dataclass(frozen=True)
class Recording:
    """A whole recording.  ``end`` is None if it was cut off; its intervals are still usable.

    ``damage``: reason why the integrity check failed; there are then no values (see :func:`damaged_recording`).
    ``trace`` and ``costs`` read the attached TRACE_FILE and COSTS_FILE, None if there is none; they raise
    FastenoughError if the file was changed.
    """

    head: Head
    intervals: Sequence[Interval]
    events: Sequence[Event]
    end: End | None
    cut_off: str | None = None
    aggregate: Aggregate = field(default_factory=Aggregate)
    damage: str | None = None
    over_time: Callable[[], Timeline] | None = field(default=None, repr=False, compare=False)
    trace: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)
    costs: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def timeline(self) -> Timeline:
        """Its intervals as arrays with folded buckets; identical from text and from columns."""
        if self.over_time is not None:
            return self.over_time()
        rows = import_module("fastenough.recording.interval_rows")  # which loads pyarrow: not for every command
        timeline: Timeline = rows.timeline_of_intervals(self.intervals, self.series)
        return timeline

    @property
    def series(self) -> tuple[Series, ...]:
        return self.head.series

    @property
    def run_id(self) -> str:
        return self.head.run_id

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, None if the recording was cut off."""
        return None if self.end is None else self.end.outcome

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the run did not complete, as stated by the end."""
        return () if self.end is None else self.end.reasons

    @cached_property
    def totals(self) -> dict[int, Histogram]:
        """The histogram of each series over the whole run, by id, at the resolution of the end or of the intervals."""
        ends = {} if self.end is None else self.end.series
        return self.aggregate.totals | {
            number: total for number, end in ends.items() if (total := total_of(end)) is not None
        }

    @property
    def duration_ns(self) -> int:
        """From the begin of the first to the end of the last interval, on CLOCK_MONOTONIC."""
        return self.aggregate.end_mono_ns - self.aggregate.begin_mono_ns

    @property
    def stopped(self) -> Instant:
        """End of the last interval, or the begin of the run if there is none."""
        if not self.intervals:
            return self.head.begin
        return Instant(self.intervals[-1].end_mono_ns, self.intervals[-1].end_wall_ns)

    def named(self, name: str) -> tuple[Series, ...]:
        """All series of one name (one per CPU, as a rule)."""
        return tuple(series for series in self.series if series.name == name)

    def lost(self, series_id: int) -> int:
        return self.aggregate.lost.get(series_id, 0)

    def missed(self, series_id: int) -> int:
        return self.aggregate.missed.get(series_id, 0)

    def covered_ns(self, series_id: int) -> int:
        """How long the series was measured: the run without gaps."""
        return self.aggregate.covered_ns.get(series_id, 0)

    def order_unknown(self, series_id: int) -> int:
        """Gaps in the order of a series' values."""
        return self.aggregate.order_unknown.get(series_id, 0)

    def rises(self, series_id: int) -> Rises | None:
        """Rises over the whole run; None if the series has none."""
        return self.aggregate.rises.get(series_id)

    def limit(self, series_id: int) -> LimitCount | None:
        """Counts of the series at the limit given before the run; None if there was none."""
        return self.aggregate.limits.get(series_id)


def damaged_recording(damage: str, head: Head) -> Recording:
    """An empty recording of a run whose integrity check failed, with the reason; ``head`` has what is known."""
    return Recording(replace(head, series=()), (), (), None, damage=damage)


T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence that calls ``load`` when an element or its length is first used."""

    def __init__(self, load: Callable[[], Sequence[T]]) -> None:
        self._load = load

    @cached_property
    def _all(self) -> Sequence[T]:
        return self._load()

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...

    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self._all[place]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)
