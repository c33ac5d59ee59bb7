# SPDX-License-Identifier: GPL-2.0-or-later
"""A run read by an importer, in the units of the tool, and its checks for consistency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from fastenough.model import Configuration, Role
from fastenough.recording.head import Event, LoadStated, RecordedSetting

Bucket = tuple[int, int, int]
"""(least value, greatest value, count), in the series' unit."""

MOST_COUNT = 2**53
MOST_NS = 10 * 366 * 86400 * 10**9


@dataclass(frozen=True)
class ImportedSeries:
    """One series as stated by its tool; None: not stated.

    ``unit_ns``: length of one unit, 1 or 1000.  ``mean`` lies at most ``mean_step`` below the true one, and half of it
    above.  ``overflow``: values beyond the tool's histogram, which begin at ``overflow_from``; None: it has none, and
    ``buckets`` are some of the values.  They ascend and do not overlap.  ``missed``: activations that the tool says
    never took place.
    """

    name: str
    from_event: str
    to_event: str
    unit_ns: int
    count: int | None
    minimum: int | None
    maximum: int | None
    mean: Decimal | None
    mean_step: Decimal = Decimal(1)
    overflow: int | None = None
    overflow_from: int | None = None
    buckets: tuple[Bucket, ...] = ()
    cpu: int | None = None
    period_ns: int | None = None
    missed: int = 0
    role: Role = Role.VERDICT
    clock: str = "unknown"
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name with CPU and labels."""
        traits = ({} if self.cpu is None else {"cpu": self.cpu}) | dict(self.labels)
        return " ".join([self.name, *(f"{name} {value}" for name, value in traits.items())])

    @property
    def overflow_unknown(self) -> bool:
        """Whether values overflowed the histogram and the tool does not state their number: ``overflow`` is then a
        lower bound."""
        return self.count is None and bool(self.overflow)

    @property
    def placed(self) -> int:
        """Number of values in buckets."""
        return sum(count for _, _, count in self.buckets)

    def in_ns(self, value: int | Decimal | None) -> int | float | None:
        if value is None:
            return None
        return value * self.unit_ns if isinstance(value, int) else float(value * self.unit_ns)


def wall_ns(time: datetime) -> int | None:
    """The wall time of a source, in whole seconds; None without a zone, since the instant is then unknown."""
    return None if time.utcoffset() is None else int(time.timestamp()) * 10**9


@dataclass(frozen=True)
class TimedValues:
    """Single values: ``mono_ns`` is the time of each, ``value`` in the unit of the series; arrays of one length."""

    mono_ns: Any
    value: Any


@dataclass(frozen=True)
class ImportedRun:
    """The run in a whole file.  ``begin_wall_ns`` and ``duration_ns`` are None if not stated.

    ``aborted``: reason of an orderly early end; empty without one.  ``load``: the load stated by the file,
    without a proof.
    """

    tool: str
    version: str | None
    implementation: str
    series: tuple[ImportedSeries, ...]
    probe: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[RecordedSetting, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    begin_wall_ns: int | None = None
    duration_ns: int | None = None
    events: tuple[Event, ...] = ()
    board: str | None = None
    configuration: Configuration | None = None
    profile: Mapping[str, Any] | None = None
    samples: tuple[TimedValues, ...] = ()
    aborted: str = ""
    load: LoadStated | None = None


def faults(imported: ImportedRun) -> Iterator[str]:
    """Inconsistencies that the tool cannot have written."""
    titles = [series.title for series in imported.series]
    if not titles:
        yield "it contains no series"
    if len(set(titles)) != len(titles):
        yield "it contains a series twice"
    for series in imported.series:
        fault = next(_of_sizes(series), None)
        if fault is not None:
            yield f"{series.title}: {fault}"
            return
        for fault in (*_of_extremes(series), *_of_buckets(series), *_of_mean(series)):
            yield f"{series.title}: {fault}"


def _of_sizes(series: ImportedSeries) -> Iterator[str]:
    """Counts and values out of range, checked before any sum."""
    counts = [series.count, series.overflow, series.missed, *(count for _, _, count in series.buckets)]
    values = [series.minimum, series.maximum, *(edge for bucket in series.buckets for edge in bucket[:2])]
    if any(abs(count or 0) > MOST_COUNT for count in counts) or series.placed > MOST_COUNT:
        yield "its count of values is impossibly large"
    if any(abs(value or 0) * series.unit_ns > MOST_NS for value in values):
        yield "it contains a time longer than 10 years"


def _of_extremes(series: ImportedSeries) -> Iterator[str]:
    if series.count is not None and series.count < 0:
        yield f"its count is {series.count}"
    if series.minimum is not None and series.maximum is not None and series.minimum > series.maximum:
        yield f"its minimum {series.minimum} is above its maximum {series.maximum}"
    if (series.overflow or 0) < 0:
        yield (
            f"its histogram contains {series.placed} values, more than the {series.count} measured: it was "
            "cut or changed"
        )
    if series.count == 1 and None not in (series.minimum, series.maximum) and series.minimum != series.maximum:
        yield "its minimum and maximum differ, but it has one value"


def _of_buckets(series: ImportedSeries) -> Iterator[str]:
    """Faults unless buckets and overflow contain all values, and the extremes are in the outer buckets."""
    if series.overflow is None or series.overflow < 0:
        return
    held = series.placed + series.overflow
    if series.count is not None and held != series.count:
        yield f"its histogram adds up to {held}, its count is {series.count}: file truncated or modified"
    if any(count < 0 or low > high for low, high, count in series.buckets) or any(
        bucket[1] >= following[0] for bucket, following in pairwise(series.buckets)
    ):
        yield "its buckets do not ascend"
    filled = [bucket for bucket in series.buckets if bucket[2]]
    if filled and series.minimum is not None and not filled[0][0] <= series.minimum <= filled[0][1]:
        yield f"its minimum {series.minimum} does not lie in its first bucket"
    if series.overflow:
        yield from _of_overflow(series, filled)
    elif filled and series.maximum is not None and not filled[-1][0] <= series.maximum <= filled[-1][1]:
        yield f"its maximum {series.maximum} does not lie in its last bucket"


def _of_overflow(series: ImportedSeries, filled: list[Bucket]) -> Iterator[str]:
    reach = series.overflow_from
    if reach is None or (filled and reach <= filled[-1][0]):
        yield "values overflowed its histogram, and its upper end is not stated"
    elif series.maximum is not None and series.maximum < reach:
        yield f"values overflowed its histogram at {reach}, and its maximum is {series.maximum}"
    elif not filled and series.minimum is not None and series.minimum < reach:
        yield f"all values overflowed its histogram at {reach}, and its minimum is {series.minimum}"


def _of_mean(series: ImportedSeries) -> Iterator[str]:
    """Fault of a mean that is not between the extremes, or impossible for these buckets."""
    if series.mean is None or not series.count:
        return
    least, most = series.mean - series.mean_step / 2, series.mean + series.mean_step
    low = None if series.minimum is None else Decimal(series.minimum)
    high = None if series.maximum is None else Decimal(series.maximum)
    if series.overflow is not None and series.overflow >= 0 and series.placed + series.overflow == series.count:
        low = Decimal(sum(low * n for low, _, n in series.buckets) + series.overflow * (series.overflow_from or 0))
        low /= series.count
        if high is not None or not series.overflow:
            beyond = series.overflow * int(high or 0)
            high = Decimal(sum(top * n for _, top, n in series.buckets) + beyond) / series.count
    if (low is not None and most < low) or (high is not None and least > high):
        yield f"its mean {series.mean} does not match its values: file truncated or modified"
