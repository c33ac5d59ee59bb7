# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of a recording for the history: five minutes of a series on a CPU, and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from sqlalchemy import RowMapping

from fastenough.history.histograms import HistogramSet, Key
from fastenough.history.results import NOTHING
from fastenough.history.schema import NO_CPU, STEP_S, K
from fastenough.model import IMPORTED, BadInput, Role, Series
from fastenough.recording import Event, Head, Interval
from fastenough.recording.culprits import culprit_text
from fastenough.recording.histogram import Histogram, bucket_index, bucket_lowest
from fastenough.recording.wakeups import MONITOR, SUMS

_CORRECTED = "_corrected"
_MAIN = ("timer/wakeup_corrected", *(f"{MONITOR}/{name}" for name in SUMS))
AHEAD_S = 2 * 3600
"""Maximum lead over this machine's clock; beyond it the clock of the board, or this one, is wrong."""


def is_ahead(wall_ns: int, now_s: float) -> bool:
    """Whether an instant is too far ahead of this machine's clock."""
    return wall_ns > (now_s + AHEAD_S) * 1e9


def is_interval_ahead(interval: Interval, now_s: float) -> bool:
    """Whether the begin or the end of an interval is too far ahead; the begin is later if the clock was set back."""
    return is_ahead(max(interval.begin_wall_ns, interval.end_wall_ns), now_s)


@dataclass(frozen=True)
class HistorySeries:
    """A series of a recording: under which name and CPU it goes into the history."""

    series: Series
    name: str
    cpu: int


def sources_of(head: Head) -> dict[int, HistorySeries]:
    """Series that the history stores, by id: judged ones, and all stations of the monitor.

    Excluded are series in ticks of an instrument, and imported ones, whose times are unknown.
    """
    if IMPORTED in head.marks or not head.begin.wall_ns:
        return {}
    taken = [
        series
        for series in head.series
        if series.tick_ps is None and (series.role is Role.VERDICT or head.probe == MONITOR)
    ]
    return {series.id: HistorySeries(series, _name(head, series), _cpu(series)) for series in taken}


def main_place(name: str) -> int:
    """Position of a series in the order in which the main one of a recording or a board is chosen.

    ``name``: as in the history, where labels follow it.
    """
    bare = name.partition(" ")[0]
    return _MAIN.index(bare) if bare in _MAIN else len(_MAIN)


def _cpu(series: Series) -> int:
    return NO_CPU if series.cpu is None or series.cpu < 0 else series.cpu


def _name(head: Head, series: Series) -> str:
    labels = "".join(f" {name}={value}" for name, value in sorted(series.labels.items()))
    of = "" if series.bytes is None else f" {series.bytes} bytes"
    return f"{head.probe}/{series.name}{of}{labels}"[:200]


def event_series(head: Head) -> dict[int, int]:
    """By the series that an event names: the one it goes to.  A corrected series leaves its maxima to the other."""
    corrected = {(series.name, series.cpu): series.id for series in head.series if series.corrected}
    return {series.id: corrected.get((series.name + _CORRECTED, series.cpu), series.id) for series in head.series}


@dataclass(frozen=True)
class IntervalRow:
    """Sum of the intervals of one run within five minutes of a series on a CPU.

    ``max_ns``: as a latency: of a two-sided series the greatest magnitude, never below 0; NOTHING without a value.
    """

    intervals: int
    count: int
    lost: int
    missed: int
    min_ns: int
    max_ns: int
    sum_ns: int
    sum_sq: int

    def plus(self, other: IntervalRow) -> IntervalRow:
        filled = [cell for cell in (self, other) if cell.count] or [self]
        return IntervalRow(
            self.intervals + other.intervals,
            self.count + other.count,
            self.lost + other.lost,
            self.missed + other.missed,
            min(cell.min_ns for cell in filled),
            max(cell.max_ns for cell in filled),
            self.sum_ns + other.sum_ns,
            self.sum_sq + other.sum_sq,
        )


_MOST_CPUS = 2**15
_MOST_NS = 2**62
MOST_VALUES = 2**40
"""Maximum count in five minutes of a CPU: one per 0.3 ns.  Sums over years fit into 64 bits."""


def require_possible(run_id: str, cells: Mapping[Key, IntervalRow]) -> None:
    """Raises BadInput for numbers beyond the range of the database, which no measurement has."""
    for (_, _, cpu), cell in cells.items():
        if (
            cell.count + cell.lost + cell.missed > MOST_VALUES
            or abs(cell.sum_ns) >= 2**63
            or cpu >= _MOST_CPUS
            or (max(abs(cell.min_ns), cell.max_ns) > _MOST_NS)
        ):
            raise BadInput(f"{run_id}: an interval contains more or longer values than five minutes of a CPU can hold")


@dataclass(frozen=True)
class Standout:
    """The greatest value of five minutes that has an event."""

    at_s: int
    cpu: int
    value_ns: int
    culprit: str


def interval_row(interval: Interval, source: HistorySeries) -> IntervalRow:
    """An interval of one series by itself."""
    held, number = interval.histograms[source.series.id], source.series.id
    low, worst = NOTHING, NOTHING
    if held.minimum is not None and held.maximum is not None:
        low = held.minimum
        worst = max(abs(low), abs(held.maximum)) if source.series.two_sided else max(held.maximum, 0)
    return IntervalRow(1, held.total, interval.lost[number], interval.missed[number], low, worst, held.sum, held.sum_sq)


def slot_s(wall_ns: int) -> int:
    """Begin of the five-minute window of an instant."""
    return wall_ns // 10**9 // STEP_S * STEP_S


def interval_rows(
    intervals: Iterable[Interval], sources: Mapping[int, HistorySeries], series: Mapping[str, int]
) -> tuple[dict[Key, IntervalRow], HistogramSet]:
    """Cells, and their histograms, by (series, begin, CPU); ``series``: their numbers by name."""
    cells: dict[Key, IntervalRow] = {}
    keys: list[Key] = []
    held: list[Histogram] = []
    for interval in intervals:
        begin_s = slot_s(interval.begin_wall_ns)
        for number in interval.histograms.keys() & sources.keys():
            source = sources[number]
            key = (series[source.name], begin_s, source.cpu)
            cell = interval_row(interval, source)
            cells[key] = cells[key].plus(cell) if key in cells else cell
            keys.append(key)
            held.append(interval.histograms[number])
    return cells, _folded(keys, held)


def _folded(keys: list[Key], held: list[Histogram]) -> HistogramSet:
    """Exact: a bucket of k = 4 is a union of buckets of any finer k."""
    sizes = np.array([histogram.index.size for histogram in held], dtype=np.int64)
    index = np.concatenate([np.empty(0, dtype=np.int64), *(histogram.index for histogram in held)])
    count = np.concatenate([np.empty(0, dtype=np.int64), *(histogram.count for histogram in held)])
    which = np.repeat(np.arange(sizes.size), sizes)
    ks = np.repeat(np.array([histogram.k for histogram in held], dtype=np.int64), sizes)
    for k in {histogram.k for histogram in held} - {K}:
        mine = ks == k
        lowest = np.where(index[mine] < 0, -bucket_lowest(-index[mine], k), bucket_lowest(index[mine], k))
        index[mine] = bucket_index(lowest, K)
    return HistogramSet.of(keys, which, index, count)


def standouts_of(
    events: Iterable[Event],
    sources: Mapping[int, HistorySeries],
    counterpart: Mapping[int, int],
    series: Mapping[str, int],
) -> dict[tuple[int, str, int], Standout]:
    """By (series, kind, begin): the greatest of each five minutes."""
    standouts: dict[tuple[int, str, int], Standout] = {}
    for event in events:
        source = sources.get(counterpart.get(-1 if event.series is None else event.series, -1))
        if event.kind not in ("max", "threshold") or source is None or event.value is None:
            continue
        value_ns = abs(event.value) if source.series.two_sided else max(event.value, 0)
        key = (series[source.name], event.kind, slot_s(event.at.wall_ns))
        if key not in standouts or standouts[key].value_ns < value_ns:
            text = culprit_text(event.culprit) if event.culprit else event.text or ""
            cpu = event.cpu if event.cpu is not None and 0 <= event.cpu < _MOST_CPUS else source.cpu
            standouts[key] = Standout(event.at.wall_ns // 10**9, cpu, min(value_ns, _MOST_NS), text[:1000])
    return standouts


def interval_columns(cell: IntervalRow) -> dict[str, int | str]:
    """The columns of a row of ``interval``."""
    return {
        "intervals": cell.intervals,
        "count": cell.count,
        "lost": cell.lost,
        "missed": cell.missed,
        "min_ns": cell.min_ns,
        "max_ns": cell.max_ns,
        "sum_ns": cell.sum_ns,
        "sum_sq": str(cell.sum_sq),
    }


def with_row(cell: IntervalRow, row: RowMapping) -> IntervalRow:
    """The sum of a cell and its stored row."""
    names = ("intervals", "count", "lost", "missed", "min_ns", "max_ns", "sum_ns", "sum_sq")
    return cell.plus(IntervalRow(*(int(row[name]) for name in names)))
