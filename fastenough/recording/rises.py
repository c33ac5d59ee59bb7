# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of values, which a histogram does not have: rises, and runs above a limit (docs/format.md, Rises)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fastenough.model import Series
from fastenough.recording.head import LimitCount
from fastenough.recording.histogram import Histogram, add_sparse, bucket_highest, bucket_lowest

EdgeArray = NDArray[np.int64]


@dataclass(frozen=True)
class Rises:
    """``edge`` ascends over buckets of the coarse scale ``k``; ``delta``: change in the number of runs at each edge.

    Both are int64 arrays of one length, without entries that are 0.
    """

    k: int
    edge: EdgeArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    delta: EdgeArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, entries: Sequence[Sequence[int]], k: int) -> Rises:
        """From [edge, delta] pairs."""
        pairs = np.array(entries, dtype=np.int64).reshape(-1, 2)
        return cls(k, pairs[:, 0].copy(), pairs[:, 1].copy())

    @classmethod
    def merged(cls, parts: Iterable[Rises], k: int) -> Rises:
        """The sum over consecutive intervals or runs, never over CPUs: one stall on two CPUs is not two."""
        filled = [part for part in parts if part.edge.size]
        if not filled:
            return cls(k)
        return cls(k, *add_sparse([part.edge for part in filled], [part.delta for part in filled]))

    def runs(self) -> EdgeArray:
        """Number of runs of consecutive values in the bucket of each edge or above."""
        return np.cumsum(self.delta)

    def lowest(self) -> EdgeArray:
        """The least value (two-sided: magnitude) of each edge."""
        return bucket_lowest(self.edge, self.k)

    def entries(self) -> list[list[int]]:
        """The entries in a recording."""
        return [[int(edge), int(delta)] for edge, delta in zip(self.edge, self.delta, strict=True)]


def at_or_above(histogram: Histogram, least: EdgeArray, two_sided: bool) -> NDArray[np.int64]:
    """Maximum number of values at or above each of ``least`` (ascending); magnitudes of a two-sided series."""
    highest = bucket_highest(histogram.index, histogram.k)
    if two_sided:
        lowest = bucket_lowest(histogram.index, histogram.k)
        highest = np.maximum(np.abs(highest), np.abs(lowest))
    order = np.argsort(highest, kind="stable")
    cumulative = np.concatenate([[0], np.cumsum(histogram.count[order])])
    return np.asarray(cumulative[-1] - cumulative[np.searchsorted(highest[order], least, side="left")], dtype=np.int64)


def rises_fault(rises: Rises, histogram: Histogram, two_sided: bool) -> str | None:
    """Why the rises contradict the values; None if they do not."""
    if np.any(np.diff(rises.edge) <= 0) or np.any(rises.delta == 0):
        return "its rises do not ascend by their edges, or one of them is 0"
    if sum(map(int, rises.delta)) != 0:
        return "its rises do not sum to 0"
    runs = rises.runs()
    if np.any(runs < 0):
        return "its rises imply a negative number of runs"
    tightest = bucket_lowest(rises.edge[1:] - 1, rises.k)
    if np.any(runs[:-1] > at_or_above(histogram, tightest, two_sided)):
        return "its rises imply more runs than there are values that high"
    return None


def limit_fault(count: LimitCount, histogram: Histogram, series: Series) -> str | None:
    """Why the limit count contradicts the values of one interval; None if it does not."""
    exceeded, runs, longest = count.exceeded, count.runs, count.longest
    contradicted = f"{exceeded} values above the limit of {count.ns} ns contradict its buckets"
    if exceeded == 0:
        if _greatest_magnitude(histogram, series.two_sided) > _units(count.ns, series, 1):
            return contradicted
        return "it has runs above the limit, but no values above it" if runs or count.sum_sq_runs or longest else None
    if runs > exceeded or longest < 1 or not exceeded <= count.sum_sq_runs <= exceeded * (2 * longest - 1):
        return "its runs above the limit contradict each other"
    if (
        not _surely(histogram, _units(count.ns, series, 1), series.two_sided)
        <= exceeded
        <= int(at_or_above(histogram, np.array([_units(count.ns, series, -1) + 1]), series.two_sided)[0])
    ):
        return contradicted
    return None


def _greatest_magnitude(histogram: Histogram, two_sided: bool) -> int:
    """The greatest value (two-sided: magnitude), which a histogram holds exactly."""
    greatest, least = histogram.maximum or 0, histogram.minimum or 0
    return max(abs(greatest), abs(least)) if two_sided else greatest


_TICK_ERROR = 0.01
"""Relative error of the length of a tick at the time when the limit was counted."""


def _units(limit_ns: int, series: Series, side: int) -> int:
    """A limit in the unit of the series; of ticks, the longest (1) or shortest (-1) it may have been counted at."""
    return limit_ns if series.unit == "ns" else math.floor(limit_ns / series.unit_ns * (1 + side * _TICK_ERROR))


def _surely(histogram: Histogram, limit: int, two_sided: bool) -> int:
    lowest, highest = histogram.lowest(), histogram.highest()
    above = lowest > limit
    return int(histogram.count[above | (highest < -limit) if two_sided else above].sum())


def total_fault(count: LimitCount) -> str | None:
    """Why the limit count contradicts itself over a run; None if it does not."""
    exceeded, runs, squares = count.exceeded, count.runs, count.sum_sq_runs
    if exceeded and not (
        runs
        and count.longest <= exceeded
        and squares <= exceeded * count.longest
        and squares * runs >= exceeded * exceeded
    ):
        return "its runs above the limit contradict each other"
    return None
