# SPDX-License-Identifier: GPL-2.0-or-later
"""How much greater a quantile of one sample is than that of another, from draws of blocks of time of both.

Source: Kuensch 1989 (moving-block bootstrap, :mod:`blocks`); a chance is the error at which the interval of the draws
just excludes what is asked about, so that both always say the same.  Draws are counted where at least ten lie beyond;
farther out the tail is Student's t, with as many degrees of freedom as there are blocks less one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from fastenough.analysis.merged import FloatArray, Merged
from fastenough.analysis.resampling import Blocks

_DRAWS = 4000
_LEAST_BEYOND = 10
"""With fewer draws beyond a place, their number does not tell how rare it is."""
_TAIL = 0.025
"""Where the spread of the draws is that of Student's t (:func:`blocks.resampled`)."""
_LEAST_CHANCE = 1e-9
"""Smaller ones are not told apart."""
_SEED = 20260101


@dataclass(frozen=True, eq=False)
class Edges:
    """A quantile in each draw: the least and the greatest value, in ns, of the bucket that holds it.

    ``freedom``: degrees of freedom, the number of blocks less one.
    """

    lowest: FloatArray
    highest: FloatArray
    freedom: int


class ResampledQuantiles:
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
        lowest, highest = self._at(np.array([max(1, np.ceil(quantile * merged.n - 1e-9))]), quantile)
        value = float(highest[0])
        beyond = merged.overflow_from_ns is not None and value >= merged.overflow_from_ns
        return (math.nan, math.nan) if beyond else (float(lowest[0]), value)

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
        return None if ranks is None else Edges(*self._at(ranks, quantile), self._blocks[tail].number - 1)

    def _is_tail(self, quantile: float) -> bool:
        return self.merged.two_sided and quantile > 0.5

    def _at(self, ranks: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest value of the buckets at these ranks."""
        merged = self.merged
        lowest, highest, count = (
            merged.magnitudes() if self._is_tail(quantile) else (*merged.edges_ns(), merged.histogram.count)
        )
        position = np.searchsorted(np.cumsum(count), ranks)
        return lowest[position], highest[position]


@dataclass(frozen=True, eq=False)
class BootstrapDifference:
    """Second less first in each draw, in ns: at least and at most, as buckets leave it open.

    ``freedom``: degrees of freedom of the sample that has fewer.
    """

    at_least: FloatArray
    at_most: FloatArray
    freedom: int

    def interval(self, confidence: float) -> tuple[float, float]:
        outside = (1 - confidence) / 2
        return self._lower_end(self.at_least, outside), -self._lower_end(-self.at_most, outside)

    def chance_of_none(self) -> float:
        """The least error, on both sides together, at which zero is excluded."""
        return min(1.0, 2 * min(self.chance_of_no_more(), self._chance_below(-self.at_most)))

    def chance_of_no_more(self) -> float:
        """The least error at which it is shown that the second is greater."""
        return self._chance_below(self.at_least)

    def is_no_more(self, confidence: float) -> bool:
        """Whether it is shown that the second is not greater."""
        return self._lower_end(-self.at_most, 1 - confidence) >= 0

    def _spread(self, draws: FloatArray, centre: float) -> float:
        """The standard error below the centre; what buckets leave open counts as if it were seen."""
        open_ns = float(np.median(self.at_most) - np.median(self.at_least))
        below = max(centre - float(np.quantile(draws, _TAIL)), open_ns / 2)
        return below / float(-special.stdtrit(self.freedom, _TAIL))

    def _lower_end(self, draws: FloatArray, outside: float) -> float:
        """What a share ``outside`` of the draws lies below."""
        counted = float(np.quantile(draws, outside))
        if outside * draws.size >= _LEAST_BEYOND:
            return counted
        centre = float(np.median(draws))
        return min(counted, centre + float(special.stdtrit(self.freedom, outside)) * self._spread(draws, centre))

    def _chance_below(self, draws: FloatArray) -> float:
        """The least share of the draws below which zero lies."""
        beyond = int(np.count_nonzero(draws <= 0))
        if beyond >= _LEAST_BEYOND:
            return (1 + beyond) / (1 + draws.size)
        centre = float(np.median(draws))
        spread = self._spread(draws, centre)
        tail = float(special.stdtr(self.freedom, -centre / spread)) if spread > 0 else 0.0
        return max(beyond / draws.size, tail, _LEAST_CHANCE)


def difference_of(
    first: Edges | None, second: Edges | None, more_ns: float = 0.0, more_share: float = 0.0
) -> BootstrapDifference | None:
    """Second less first, and less what it may be more than that: a time, and a share of the first.

    The draws of one are put into another order: both are made with the same random numbers.
    """
    if first is None or second is None:
        return None
    order = np.random.default_rng(_SEED).permutation(second.lowest.size)
    low, high = ((1 + more_share) * edge + more_ns for edge in (first.lowest, first.highest))
    return BootstrapDifference(
        second.lowest[order] - high, second.highest[order] - low, min(first.freedom, second.freedom)
    )
