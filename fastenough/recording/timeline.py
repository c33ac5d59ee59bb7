# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines: the intervals of a recording as arrays, with buckets folded to k = 4.

Totals stay at k = 10.  Of an interval the extremes, counts and losses are exact; its buckets show where the body lay,
for which 6 % is enough, and at k = 10 a day of one-second intervals on 8 CPUs would not fit the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.recording.histogram import add_sparse, bucket_index, bucket_lowest

INTERVAL_K = 4
"""Buckets of intervals are folded to this scale: 6 % wide, some 30 of them, where k = 10 has hundreds."""

IntArray = NDArray[np.int64]
_NARROWER = (np.int16, np.int32)
KnownValues = tuple[IntArray, NDArray[np.bool_]]
"""Values, and which of them are known: the others are 0."""


def packed(values: IntArray) -> NDArray[np.signedinteger[Any]]:
    """The array in the smallest sufficient integer type."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    fitting = (kind for kind in _NARROWER if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return values.astype(next(fitting, np.int64))


def folded(index: IntArray, k: int) -> IntArray:
    """Buckets of scale ``k`` folded to the scale of intervals, exactly."""
    if k <= INTERVAL_K:
        return index
    magnitude = np.asarray(bucket_index(bucket_lowest(np.abs(index), k), INTERVAL_K))
    return np.where(index < 0, -magnitude, magnitude)


@dataclass(frozen=True)
class Course:
    """One series over time.  Arrays of one length have an entry for each interval that contains the series; ``at``
    is which interval that is.  ``minimum``, ``maximum`` and ``sum`` are exact (``sum`` up to rounding), and 0 where
    ``count`` is; ``exceeded`` and ``runs`` likewise, of the limit given before the run, and 0 where there was none.

    Bucket ``i`` of entry ``n`` is ``offsets[n] <= i < offsets[n + 1]`` of ``index`` and ``bucket_count``, on the
    scale ``k``.  They are nearly all of a timeline, and ``packed``, since a year of them is in memory at once.
    """

    k: int
    at: IntArray
    count: IntArray
    lost: IntArray
    missed: IntArray
    minimum: IntArray
    maximum: IntArray
    sum: NDArray[np.float64]
    exceeded: IntArray
    runs: IntArray
    offsets: IntArray
    packed_index: NDArray[np.signedinteger[Any]]
    packed_count: NDArray[np.signedinteger[Any]]

    @property
    def index(self) -> IntArray:
        return self.packed_index.astype(np.int64)

    @property
    def bucket_count(self) -> IntArray:
        return self.packed_count.astype(np.int64)

    def within(self, first: int, last: int) -> slice:
        """The entries of intervals ``first`` to ``last``, this one excluded."""
        begin, end = np.searchsorted(self.at, [first, last])
        return slice(int(begin), int(end))

    def buckets(self, entries: slice) -> tuple[IntArray, IntArray]:
        """Ascending bucket indices and counts of these entries together."""
        part = slice(int(self.offsets[entries.start]), int(self.offsets[entries.stop]))
        return add_sparse([self.packed_index[part].astype(np.int64)], [self.packed_count[part].astype(np.int64)])


@dataclass(frozen=True)
class Timeline:
    """All intervals: their bounds, one entry each, and the course of each series by its id."""

    begin_mono_ns: IntArray
    end_mono_ns: IntArray
    begin_wall_ns: IntArray
    end_wall_ns: IntArray
    courses: Mapping[int, Course]
    counters: Mapping[str, KnownValues]
    load: Mapping[str, KnownValues]

    def __len__(self) -> int:
        return int(self.begin_mono_ns.size)
