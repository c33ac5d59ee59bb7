# SPDX-License-Identifier: GPL-2.0-or-later
"""How much greater a quantile of one sample is than that of another, from draws of blocks of time of both.

Source: Kuensch 1989 (moving-block bootstrap, :mod:`blocks`); a chance is the error at which the interval of the draws
just excludes what is asked about, so that both always say the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.merged import FloatArray, Merged
from fastenough.analysis.resampling import Blocks

_DRAWS = 4000
"""More than for an interval alone: of many differences judged together each may err as rarely as once in 1,000."""
_SEED = 20260101


@dataclass(frozen=True, eq=False)
class Edges:
    """A quantile in each draw: the least and the greatest value, in ns, of the bucket that holds it."""

    lowest: FloatArray
    highest: FloatArray


class Drawn:
    """Merged samples whose quantiles are read in draws of blocks; of a two-sided series, of magnitudes beyond the
    median."""

    def __init__(self, merged: Merged) -> None:
        self.merged = merged
        self._blocks: dict[bool, Blocks] = {}

    def bucket_ns(self, quantile: float) -> tuple[float, float]:
        """Least and greatest value of the bucket that holds the quantile of all values; NaN with too few values, or
        where they were only counted."""
        merged = self.merged
        if merged.n < round(1 / (1 - quantile)):
            return math.nan, math.nan
        at = self._at(np.array([max(1, np.ceil(quantile * merged.n - 1e-9))]), quantile)
        value = float(at.highest[0])
        beyond = merged.overflow_from_ns is not None and value >= merged.overflow_from_ns
        return (math.nan, math.nan) if beyond else (float(at.lowest[0]), value)

    def value_ns(self, quantile: float) -> float | None:
        """The quantile of all values, which it does not exceed; None where there is none."""
        value = self.bucket_ns(quantile)[1]
        return None if math.isnan(value) else value

    def edges(self, quantile: float) -> Edges | None:
        """None: too few blocks of time, or of independent disturbances above the quantile."""
        tail = self._is_tail(quantile)
        if tail not in self._blocks:
            merged = self.merged
            self._blocks[tail] = (merged.magnitudes_over_time if tail else merged.over_time).redrawn(_DRAWS)
        ranks = self._blocks[tail].ranks(quantile)
        return None if ranks is None else self._at(ranks, quantile)

    def _is_tail(self, quantile: float) -> bool:
        return self.merged.two_sided and quantile > 0.5

    def _at(self, ranks: FloatArray, quantile: float) -> Edges:
        merged = self.merged
        lowest, highest, count = (merged.magnitudes() if self._is_tail(quantile) else
                                  (*merged.edges_ns(), merged.histogram.count))
        position = np.searchsorted(np.cumsum(count), ranks)
        return Edges(lowest[position], highest[position])


@dataclass(frozen=True, eq=False)
class DrawnDifference:
    """Second less first in each draw, in ns: at least and at most, as buckets leave it open."""

    at_least: FloatArray
    at_most: FloatArray

    def interval(self, confidence: float) -> tuple[float, float]:
        outside = (1 - confidence) / 2
        return float(np.quantile(self.at_least, outside)), float(np.quantile(self.at_most, 1 - outside))

    def chance_of_none(self) -> float:
        """The least error, on both sides together, at which zero is excluded."""
        return min(1.0, 2 * min(self.chance_of_no_more(), _share(self.at_most >= 0)))

    def chance_of_no_more(self) -> float:
        """The least error at which it is shown that the second is greater."""
        return _share(self.at_least <= 0)

    def is_no_more(self, confidence: float) -> bool:
        """Whether it is shown that the second is not greater."""
        return bool(np.quantile(self.at_most, confidence) <= 0)


def _share(held: NDArray[np.bool_]) -> float:
    """Of the draws and what was seen itself."""
    return float((1 + np.count_nonzero(held)) / (1 + held.size))


def difference_of(first: Edges | None, second: Edges | None, more_ns: float = 0.0,
                  more_share: float = 0.0) -> DrawnDifference | None:
    """Second less first, and less what it may be more than that: a time, and a share of the first.

    The draws of one are put into another order: both are made with the same random numbers.
    """
    if first is None or second is None:
        return None
    order = np.random.default_rng(_SEED).permutation(second.lowest.size)
    low, high = ((1 + more_share) * edge + more_ns for edge in (first.lowest, first.highest))
    return DrawnDifference(second.lowest[order] - high, second.highest[order] - low)
