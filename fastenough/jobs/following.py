# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recording says while it is still being written, kept up by each line that is added to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fastenough.model import BadInput, Role, Series
from fastenough.recording import End, Event, Head, Histogram, Interval
from fastenough.recording.aggregate import Adding
from fastenough.recording.reader import ends_of, head_of, part_of

_KEPT = 200
"""So many events with a culprit are kept, the newest."""
_ONE_IN = 1000
"""The tail that is shown: one value in so many lies above it."""


@dataclass(frozen=True)
class SeriesStatus:
    """One series so far; times in ns, None where it has no value yet.  For jitter they are magnitudes.

    ``tail_ns``: the 99.9 % quantile, from 1,000 values on.  ``since_maximum_ns``: measured time from the end of the
    interval in which the maximum was first reached.  ``latest_ns``: the maximum of the last interval.
    """

    series: Series
    n: int
    lost: int
    missed: int
    tail_ns: float | None
    maximum_ns: float | None
    since_maximum_ns: int | None
    latest_ns: float | None


def greatest(series: Series, minimum: int | None, maximum: int | None) -> int | None:
    """The value that is furthest from what was due."""
    if minimum is None or maximum is None:
        return None
    return max(maximum, -minimum) if series.two_sided else maximum


def _tail(series: Series, total: Histogram) -> int | None:
    """The upper edge of the bucket that holds the quantile: never understated."""
    n = total.total
    if n < _ONE_IN:
        return None
    edges = total.highest()
    if series.two_sided:
        edges = np.maximum(np.abs(edges), np.abs(total.lowest()))
    order = np.argsort(edges, kind="stable")
    return int(edges[order][np.searchsorted(np.cumsum(total.count[order]), n - n // _ONE_IN)])


class LiveRecording:
    """Takes the lines of one recording in order; raises BadInput, naming ``name``, for what is no recording's.

    ``head`` is None before the first line, ``end`` before the last; ``last`` is the newest interval.  ``culprits``: the
    newest events that name one, ``culprits_seen`` how many there were, ``worst_culprit`` that of the greatest value.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._first = b""
        self.head: Head | None = None
        self.end: End | None = None
        self.last: Interval | None = None
        self.culprits: deque[Event] = deque(maxlen=_KEPT)
        self.culprits_seen = 0
        self.worst_culprit: Event | None = None
        self._adding = Adding(name, (), 0)
        self._maxima: dict[int, tuple[int, int]] = {}

    def take(self, raw: bytes) -> None:
        """The next line."""
        if self.end is not None:
            raise BadInput(f"{self._name}: something follows the end line")
        if self.head is None:
            self._first, self.head = raw, head_of(raw, self._name)
            self._adding = Adding(self._name, self.head.series, self.head.interval_ns)
            return
        part = part_of(raw, self._name, self.head)
        if isinstance(part, Interval):
            self._interval(part, self.head)
        elif isinstance(part, Event):
            self._event(part)
        else:
            self.end = ends_of(self._first, raw, self._name)[1]
            if self.end is None:
                raise BadInput(f"{self._name}: a second head: two recordings were written into one file")

    def _interval(self, interval: Interval, head: Head) -> None:
        if interval.seq != (0 if self.last is None else self.last.seq + 1):
            raise BadInput(f"{self._name}: interval {interval.seq} does not follow the one before it")
        self._adding.interval(interval)
        self.last = interval
        for series in head.series:
            value = self._greatest_of_last(series)
            if value is not None and (series.id not in self._maxima or value > self._maxima[series.id][0]):
                self._maxima[series.id] = value, interval.end_mono_ns

    def _event(self, event: Event) -> None:
        if event.culprit:
            self.culprits.append(event)
            self.culprits_seen += 1
            if self.worst_culprit is None or (event.value or 0) > (self.worst_culprit.value or 0):
                self.worst_culprit = event

    def culprits_after(self, told: int) -> list[Event]:
        """Those that came after so many, as far as they are kept."""
        new = min(self.culprits_seen - told, len(self.culprits))
        return list(self.culprits)[len(self.culprits) - new :]

    def _greatest_of_last(self, series: Series) -> int | None:
        histogram = None if self.last is None else self.last.histograms.get(series.id)
        return None if histogram is None else greatest(series, histogram.minimum, histogram.maximum)

    @property
    def measured_ns(self) -> int:
        """From the begin of the run to the end of the newest interval."""
        return 0 if self.head is None or self.last is None else self.last.end_mono_ns - self.head.begin.mono_ns

    @property
    def planned_ns(self) -> int | None:
        """How long the run is to last, None where its head does not say."""
        planned = None if self.head is None else self.head.parameters.get("duration_ns")
        return planned if type(planned) is int and planned > 0 else None

    def standings(self) -> list[SeriesStatus]:
        """The series that a limit is judged by, or all where there is none of these."""
        if self.head is None:
            return []
        shown = [series for series in self.head.series if series.role is Role.VERDICT and series.refused is None]
        added = self._adding.added()
        return [
            self._standing(series, added.totals[series.id], added.lost, added.missed)
            for series in shown or self.head.series
        ]

    def _standing(
        self, series: Series, total: Histogram, lost: Mapping[int, int], missed: Mapping[int, int]
    ) -> SeriesStatus:
        def in_ns(value: int | None) -> float | None:
            return None if value is None else value * series.unit_ns

        maximum, at_mono_ns = self._maxima.get(series.id, (None, 0))
        since_ns = None if maximum is None or self.last is None else self.last.end_mono_ns - at_mono_ns
        return SeriesStatus(
            series,
            total.total,
            lost[series.id],
            missed[series.id],
            in_ns(_tail(series, total)),
            in_ns(maximum),
            since_ns,
            in_ns(self._greatest_of_last(series)),
        )
