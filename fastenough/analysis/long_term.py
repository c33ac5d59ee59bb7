# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings over hours to years on the wall clock: maxima of five minutes, and histograms of longer stretches.

The figures of the QA farm of OSADL: a continuous curve of five-minute maxima, and latency plots one behind the other.
Minimum and mean of such maxima mean nothing, and are not computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.model import Series
from fastenough.recording import Recording
from fastenough.recording.histogram import add_sparse, bucket_highest, bucket_index, bucket_lowest
from fastenough.recording.timeline import INTERVAL_K, Course, Timeline

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Part = tuple[Recording, Series]

_SECOND_NS = 10**9
FIVE_MINUTES_NS = 300 * _SECOND_NS
_HOUR_NS, _DAY_NS = 3600 * _SECOND_NS, 86400 * _SECOND_NS
STRETCHES_NS = (
    FIVE_MINUTES_NS,
    6 * FIVE_MINUTES_NS,
    2 * _HOUR_NS,
    12 * _HOUR_NS,
    _DAY_NS,
    7 * _DAY_NS,
    30 * _DAY_NS,
    365 * _DAY_NS,
)
"""How long the stretches of a ridge plot may be."""


@dataclass(frozen=True, eq=False)
class FiveMinutes:
    """The greatest value of each five minutes in which there was one, in ns, and the greatest of all.

    ``begin_wall_ns``: multiples of five minutes of the wall clock, ascending.  ``worst_wall_ns``: the end of the
    interval that holds the worst, which came on ``worst_cpu``.  ``longest_ns``: of the intervals that were recorded.
    """

    begin_wall_ns: IntArray
    maximum_ns: FloatArray
    worst_ns: float
    worst_wall_ns: int
    worst_cpu: int | None
    longest_ns: int

    @property
    def span_ns(self) -> int:
        """From the first five minutes to the last."""
        return int(self.begin_wall_ns[-1] - self.begin_wall_ns[0]) + FIVE_MINUTES_NS if self.begin_wall_ns.size else 0


@dataclass(frozen=True, eq=False)
class Stretch:
    """The values of one stretch of time: values per bucket of the scale of intervals, ascending, and the greatest
    one."""

    begin_wall_ns: int
    maximum_ns: float
    index: IntArray
    count: IntArray

    @property
    def n(self) -> int:
        return int(self.count.sum())


def _greatest(course: Course, series: Series) -> FloatArray:
    values = np.maximum(np.abs(course.minimum), np.abs(course.maximum)) if series.two_sided else course.maximum
    return values * np.float64(series.unit_ns)


def _maxima(parts: Sequence[Part]) -> Iterator[tuple[IntArray, FloatArray, Timeline, int | None]]:
    """Of each series the intervals that hold values: which they are, their maxima."""
    for recording, series in parts:
        course = recording.timeline.courses[series.id]
        filled = course.count > 0
        yield course.at[filled], _greatest(course, series)[filled], recording.timeline, series.cpu


def five_minutes(parts: Sequence[Part]) -> FiveMinutes | None:
    """Of series of one kind, CPUs and runs together.  None: they hold nothing.

    An interval counts where it begins, and a longer one in all five minutes that it touched: somewhere in it was its
    maximum, and all of it was measured.
    """
    blocks, maxima = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    worst: tuple[float, int, int | None] | None = None
    longest_ns = 0
    for places, values_ns, timeline, cpu in _maxima(parts):
        if not places.size:
            continue
        lengths_ns = timeline.end_mono_ns[places] - timeline.begin_mono_ns[places]
        longest_ns = max(longest_ns, int(lengths_ns.max()))
        touched = np.maximum(1, -(-(lengths_ns - _SECOND_NS) // FIVE_MINUTES_NS))
        since = np.arange(touched.sum()) - np.repeat(np.cumsum(touched) - touched, touched)
        blocks.append(np.repeat(timeline.begin_wall_ns[places] // FIVE_MINUTES_NS, touched) + since)
        maxima.append(np.repeat(values_ns, touched))
        place = int(values_ns.argmax())
        if worst is None or values_ns[place] > worst[0]:
            worst = float(values_ns[place]), int(timeline.end_wall_ns[places[place]]), cpu
    if worst is None:
        return None
    block, block_of_value = np.unique(np.concatenate(blocks), return_inverse=True)
    greatest = np.full(block.size, -np.inf)
    np.maximum.at(greatest, block_of_value, np.concatenate(maxima))
    return FiveMinutes(block * FIVE_MINUTES_NS, greatest, *worst, longest_ns)


def stretch_for(span_ns: int, limit: int) -> int:
    """The shortest stretch of which no more than so many cover a span."""
    return next((length for length in STRETCHES_NS if span_ns <= length * limit), STRETCHES_NS[-1])


def stretches(parts: Sequence[Part], length_ns: int) -> list[Stretch]:
    """The histograms of stretches of this length that hold values, the oldest first; magnitudes, in buckets of ns."""
    buckets: dict[int, list[tuple[IntArray, IntArray]]] = {}
    maxima: dict[int, float] = {}
    for recording, series in parts:
        timeline, course = recording.timeline, recording.timeline.courses[series.id]
        number = timeline.begin_wall_ns // length_ns
        filled = course.count > 0
        for stretch, value_ns in zip(
            number[course.at[filled]].tolist(), _greatest(course, series)[filled], strict=True
        ):
            maxima[stretch] = max(value_ns, maxima.get(stretch, value_ns))
        joins = np.flatnonzero(np.diff(number)) + 1
        for first, last in zip([0, *joins], [*joins, number.size], strict=True):
            index, count = course.buckets(course.within(int(first), int(last)))
            if index.size:
                buckets.setdefault(int(number[first]), []).append((_in_ns(index, course.k, series), count))
    return [
        Stretch(
            number * length_ns,
            maxima[number],
            *add_sparse([index for index, _ in parts_of_stretch], [count for _, count in parts_of_stretch]),
        )
        for number, parts_of_stretch in sorted(buckets.items())
    ]


def _in_ns(index: IntArray, k: int, series: Series) -> IntArray:
    """The buckets in ns that hold the upper ends of these, of a jitter without its sign: never understated."""
    value = bucket_highest(index, k)
    if series.two_sided:
        value = np.abs(np.where(index < 0, bucket_lowest(index, k), value))
    highest_ns = np.ceil(np.maximum(value, 0) * np.float64(series.unit_ns))
    return bucket_index(highest_ns.astype(np.int64), INTERVAL_K)
