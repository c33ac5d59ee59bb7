# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums over a recording, computed in one pass: memory does not grow with the number of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fastenough.model import BadInput, Series
from fastenough.recording.head import Event, LimitCount, LoadUse
from fastenough.recording.histogram import Histogram
from fastenough.recording.interval import Interval
from fastenough.recording.rises import Rises

MOST_COUNT = 2**62
"""Maximum number of values of one series."""
_TELLING_NS = 100_000_000
"""Minimum time between two readings of a load: CPU time is counted in ticks of 10 ms."""
_AT_ONCE = 64
"""Histograms of a series that are added at once: adding them one by one would sort the total each time."""


@dataclass(frozen=True)
class CounterSum:
    """One counter over all intervals: the number of intervals that have it, their sum and minimum."""

    known: int
    sum: int
    least: int


@dataclass(frozen=True)
class LoadSum:
    """The load over all intervals: the number of intervals in which it ran, was idle, or had no process."""

    ran: int = 0
    idle: int = 0
    gone: int = 0


@dataclass(frozen=True)
class Aggregate:
    """Sums over all intervals, by series id, and how many events of each kind there are.

    ``rises`` and ``limits`` of the series that have them.  ``covered_ns``: the time in which the series was measured,
    which an interval without a value is no part of.
    """

    totals: dict[int, Histogram] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    missed: dict[int, int] = field(default_factory=dict)
    intervals: int = 0
    begin_mono_ns: int = 0
    end_mono_ns: int = 0
    counters: dict[str, CounterSum] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    rises: dict[int, Rises] = field(default_factory=dict)
    limits: dict[int, LimitCount] = field(default_factory=dict)
    order_unknown: dict[int, int] = field(default_factory=dict)
    covered_ns: dict[int, int] = field(default_factory=dict)
    load: LoadSum = LoadSum()


class Aggregator:
    """Adds intervals and events one by one; raises BadInput, with ``name`` in the message, above the maximum of a run.

    ``interval_ns``: nominal length of an interval.
    """

    def __init__(self, name: str, series: Sequence[Series], interval_ns: int) -> None:
        self._name = name
        self._interval_ns = interval_ns
        self._period_ns = {declared.id: declared.period_ns or 0 for declared in series}
        self._covered_ns = dict.fromkeys(self._period_ns, 0)
        self._load = LoadSum()
        self._greatest: dict[int, int] = {}
        self._k = {declared.id: declared.k for declared in series}
        self._waiting: dict[int, list[Histogram]] = {number: [] for number in self._k}
        self._counts = dict.fromkeys(self._k, 0)
        self._lost: dict[int, int] = dict.fromkeys(self._k, 0)
        self._missed: dict[int, int] = dict.fromkeys(self._k, 0)
        self._counters: dict[str, CounterSum] = {}
        self._events: dict[str, int] = {}
        self._rises: dict[int, Rises] = {}
        self._limits: dict[int, LimitCount | None] = {}
        self._unknown: dict[int, int] = {}
        self._intervals = 0
        self._first_mono_ns = self._last_mono_ns = 0

    def interval(self, interval: Interval) -> None:
        if self._intervals == 0:
            self._first_mono_ns = interval.begin_mono_ns
        self._last_mono_ns = interval.end_mono_ns
        self._intervals += 1
        for number, histogram in interval.histograms.items():
            self._lost[number] += interval.lost[number]
            self._missed[number] += interval.missed[number]
            self._counts[number] += histogram.total
            if self._counts[number] + self._lost[number] + self._missed[number] > MOST_COUNT:
                raise BadInput(f"{self._name}: series {number} counts more than {MOST_COUNT} values")
            self._add(number, histogram)
            self._cover(number, interval.end_mono_ns - interval.begin_mono_ns, histogram.total)
            self._limit(number, interval.limits.get(number))
        for number, rises in interval.rises.items():
            before = self._rises.get(number, Rises(rises.k))
            self._rises[number] = Rises.merged([before, rises], rises.k)
        for number, gaps in interval.order_unknown.items():
            self._unknown[number] = self._unknown.get(number, 0) + gaps
        self._count(interval.counters)
        self._watch(interval.load)

    def _cover(self, number: int, length_ns: int, values: int) -> None:
        """An interval that is too long may hide a time without measurement, and so may one without a value,
        unless no value was due in it."""
        period_ns = self._period_ns[number]
        if values or length_ns < period_ns:
            self._covered_ns[number] += min(length_ns, 2 * max(self._interval_ns, period_ns))

    def _watch(self, use: LoadUse | None) -> None:
        """A load read twice within a few clock ticks may show no use although it ran."""
        before = self._load
        if use is None:
            return
        if use.processes == 0:
            self._load = replace(before, gone=before.gone + 1)
        elif use.ran is False and (use.window_ns is None or use.window_ns >= _TELLING_NS):
            self._load = replace(before, idle=before.idle + 1)
        elif use.ran is not None:
            self._load = replace(before, ran=before.ran + 1)

    def _limit(self, number: int, count: LimitCount | None) -> None:
        """One limit for the whole run, or none."""
        before = self._limits.setdefault(
            number, None if count is None else replace(count, exceeded=0, runs=0, sum_sq_runs=0, longest=0)
        )
        if (None if before is None else before.ns) != (None if count is None else count.ns):
            raise BadInput(f"{self._name}: series {number}: the limit differs between intervals")
        if before is not None and count is not None:
            self._limits[number] = before.plus(count)

    def _add(self, number: int, histogram: Histogram) -> None:
        waiting = self._waiting[number]
        waiting.append(histogram)
        if len(waiting) >= _AT_ONCE:
            waiting[:] = [Histogram.merged(waiting, self._k[number])]

    def _count(self, counters: Mapping[str, int | None]) -> None:
        for name, value in counters.items():
            if value is not None:
                before = self._counters.get(name, CounterSum(0, 0, value))
                self._counters[name] = CounterSum(before.known + 1, before.sum + value, min(before.least, value))

    def event(self, event: Event) -> None:
        self._events[event.kind] = self._events.get(event.kind, 0) + 1
        if event.series is None:
            return
        if event.series not in self._k:
            raise BadInput(f"{self._name}: an event names series {event.series}, which is not declared in the head")
        if event.kind in ("max", "threshold") and event.value is not None:
            self._greatest[event.series] = max(event.value, self._greatest.get(event.series, event.value))

    def check_events(self) -> None:
        """Raises BadInput if an event of a complete recording has a value above the maximum of its series."""
        for number, value in self._greatest.items():
            maximum = Histogram.merged(self._waiting[number], self._k[number]).maximum
            if not self._lost[number] and (maximum is None or value > maximum):
                raise BadInput(
                    f"{self._name}: series {number}: an event reports a value of {value}, which is above the maximum"
                )

    def aggregate(self) -> Aggregate:
        """The sums so far."""
        totals = {number: Histogram.merged(waiting, self._k[number]) for number, waiting in self._waiting.items()}
        return Aggregate(
            totals,
            dict(self._lost),
            dict(self._missed),
            self._intervals,
            self._first_mono_ns,
            self._last_mono_ns,
            dict(self._counters),
            dict(self._events),
            dict(self._rises),
            {number: count for number, count in self._limits.items() if count is not None},
            dict(self._unknown),
            dict(self._covered_ns),
            self._load,
        )
