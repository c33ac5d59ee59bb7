# SPDX-License-Identifier: GPL-2.0-or-later
"""Difference of a quantile between two samples, by a bootstrap of blocks of time of both.

Source: Kuensch 1989 (moving-block bootstrap, :mod:`blocks`); a chance is the error at which the interval of the draws
just excludes what is asked about, so that both always say the same.  Draws are counted where at least ten lie beyond;
farther out the tail is Student's t, with as many degrees of freedom as there are blocks less one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from fastenough.analysis import special
from fastenough.analysis.measures import has_omitted_values, is_above_values, quantile_range
from fastenough.analysis.merged import CountArray, FloatArray, Merged
from fastenough.analysis.resampling import Blocks, NoInterval

_DRAWS = 4000
_LEAST_BEYOND = 10
"""Least number of draws beyond a value for their count to estimate its probability."""
_TAIL = 0.025
"""Tail probability at which the draws have the spread of Student's t (:func:`blocks.resample`)."""
_LEAST_CHANCE = 1e-9
"""Smallest p-value that is reported."""
_SEED = 20260101
_Times = TypeVar("_Times", float, FloatArray)


@dataclass(frozen=True, eq=False)
class Edges:
    """A quantile in each draw: least and greatest value, in ns, of its bucket.

    ``freedom``: degrees of freedom, the number of blocks less one.
    """

    lowest: FloatArray
    highest: FloatArray
    freedom: int

    def interval(self, confidence: float) -> tuple[float, float]:
        """The two-sided interval of the quantile, in ns."""
        return BootstrapDifference(self.lowest, self.highest, self.freedom).interval(confidence)


class ResampledQuantiles:
    """Merged samples with bootstrap quantiles; those of a two-sided series above 0.5 are of magnitudes.

    ``of_values``: None for the quantiles of the values.  Otherwise these, and quantiles are those of all activations:
    missed periods without a value rank above all values.  ``missed``: their number, 0 for quantiles of the values.
    """

    def __init__(self, merged: Merged, of_values: ResampledQuantiles | None = None) -> None:
        self.merged, self._of_values = merged, of_values
        self.missed = merged.missed_uncharged if of_values else 0
        self._blocks: dict[bool, Blocks] = {}

    @cached_property
    def of_activations(self) -> ResampledQuantiles:
        """The quantiles of all activations."""
        return self if self.missed == self.merged.missed_uncharged else ResampledQuantiles(self.merged, self)

    def is_missed(self, quantile: float) -> bool:
        """Whether the quantile is unknown because of missed periods without a value: it lies among them, or the series
        is a jitter, whose values below zero they do not exceed."""
        return self.missed > 0 and (self.merged.two_sided or is_above_values(self.merged, quantile, self.missed))

    def bucket_ns(self, quantile: float) -> tuple[float, float]:
        """Bucket of a quantile: its least and greatest value.  NaN with too few values, among those that an imported
        source only counted, or if :meth:`is_missed`."""
        bucket = None if self.is_missed(quantile) else quantile_range(self.merged, quantile, self.missed)
        return bucket or (math.nan, math.nan)

    def value_ns(self, quantile: float) -> float | None:
        """Upper bound of a quantile, in ns; None if there is none."""
        value = self.bucket_ns(quantile)[1]
        return None if math.isnan(value) else value

    def edges(self, quantile: float) -> Edges | None:
        """The quantile in each draw; None with too few blocks or independent disturbances above the quantile, or if
        an imported source left values out.

        If the quantile :meth:`is_missed`, it is at least that of the values, and has no upper bound.
        """
        if has_omitted_values(self.merged):
            return None
        if self._of_values and self.is_missed(quantile):
            of_values = self._of_values.edges(quantile)
            return of_values and replace(of_values, highest=np.full_like(of_values.highest, math.inf))
        blocks = self._blocks_at(quantile)
        ranks = blocks.ranks(quantile)
        return None if ranks is None else Edges(*self._at(ranks, quantile), blocks.number - 1)

    def no_interval(self, quantile: float) -> NoInterval | None:
        """Why :meth:`edges` are None."""
        if self._of_values and self.is_missed(quantile):
            return self._of_values.no_interval(quantile)
        return self._blocks_at(quantile).no_interval(quantile)

    def _blocks_at(self, quantile: float) -> Blocks:
        tail = self._is_tail(quantile)
        if tail not in self._blocks:
            merged = self.merged
            of_values = merged.magnitudes_over_time if tail else merged.over_time
            self._blocks[tail] = (merged.activations_over_time if self.missed else of_values).redrawn(_DRAWS)
        return self._blocks[tail]

    def above(self, quantile: float, limits_ns: tuple[float, float]) -> tuple[int, int]:
        """Values surely above the second limit, and values possibly above the first one, as this quantile counts them
        (in ns; by the buckets)."""
        lowest, highest, count = self._buckets(quantile)
        return int(count[lowest > limits_ns[1]].sum()), int(count[highest > limits_ns[0]].sum())

    def _is_tail(self, quantile: float) -> bool:
        return self.merged.two_sided and quantile > 0.5

    def _at(self, ranks: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
        """Least and greatest value of the buckets at these ranks.  A missed period exceeds all values, by an unknown
        time."""
        lowest, highest, count = self._buckets(quantile)
        position = np.searchsorted(np.cumsum(count), ranks)
        return np.append(lowest, lowest[-1:])[position], np.append(highest, math.inf)[position]

    def _buckets(self, quantile: float) -> tuple[FloatArray, FloatArray, CountArray]:
        """Least value, greatest value and count of each bucket, ascending."""
        merged = self.merged
        return merged.magnitudes if self._is_tail(quantile) else (*merged.edges_ns, merged.histogram.count)


@dataclass(frozen=True, eq=False)
class BootstrapDifference:
    """Second less first in each draw, in ns, at least and at most within the buckets.

    ``freedom``: degrees of freedom of the sample that has fewer.
    """

    at_least: FloatArray
    at_most: FloatArray
    freedom: int

    def interval(self, confidence: float) -> tuple[float, float]:
        outside = (1 - confidence) / 2
        return self._lower_end(self.at_least, outside), -self._lower_end(-self.at_most, outside)

    def chance_of_none(self) -> float:
        """Two-sided p-value of no difference."""
        return min(1.0, 2 * min(self.chance_of_no_more(), self._chance_below(-self.at_most)))

    def chance_of_no_more(self) -> float:
        """One-sided p-value of the second not being greater."""
        return self._chance_below(self.at_least)

    def is_no_more(self, confidence: float) -> bool:
        """Whether the second is not greater, at this confidence."""
        return self._lower_end(-self.at_most, 1 - confidence) >= 0

    def _spread(self, draws: FloatArray, centre: float) -> float:
        """Standard error below the centre, at least that of the bucket widths, if these have an end."""
        open_ns = float(np.median(self.at_most) - np.median(self.at_least))
        open_ns = open_ns if math.isfinite(open_ns) else 0.0
        below = max(centre - _quantile(draws, _TAIL), open_ns / 2)
        return below / float(-special.stdtrit(self.freedom, _TAIL))

    def _lower_end(self, draws: FloatArray, outside: float) -> float:
        """Value below which a share ``outside`` of the draws lies."""
        counted = _quantile(draws, outside)
        if outside * draws.size >= _LEAST_BEYOND or math.isinf(counted):
            return counted
        centre = float(np.median(draws))
        return min(counted, centre + float(special.stdtrit(self.freedom, outside)) * self._spread(draws, centre))

    def _chance_below(self, draws: FloatArray) -> float:
        """Share of the draws that are not above zero, estimated by Student's t in the far tail."""
        beyond = int(np.count_nonzero(draws <= 0))
        if beyond >= _LEAST_BEYOND:
            return (1 + beyond) / (1 + draws.size)
        centre = float(np.median(draws))
        spread = self._spread(draws, centre)
        tail = float(special.stdtr(self.freedom, -centre / spread)) if spread > 0 else 0.0
        return max(beyond / draws.size, tail, _LEAST_CHANCE)


def _quantile(draws: FloatArray, share: float) -> float:
    """Quantile of draws; the next lower draw if some are -inf, since these have no difference to others."""
    return float(np.quantile(draws, share, method="linear" if np.isfinite(draws).all() else "lower"))


def no_interval_of_difference(first: ResampledQuantiles, second: ResampledQuantiles, quantile: float) -> NoInterval:
    """Why the difference of a quantile has no interval; dependence, if it is the reason of either sample."""
    reasons = {first.no_interval(quantile), second.no_interval(quantile)}
    return NoInterval.DEPENDENT if NoInterval.DEPENDENT in reasons else NoInterval.FEW_SAMPLES


def grown_by(base: _Times, more_ns: float, more_share: float) -> _Times:
    """A quantile, or its draws, with the allowed growth: a time, and a share of the magnitude.

    It may be below zero (jitter), or infinite.
    """
    return base + more_share * abs(base) + more_ns if more_share else base + more_ns


def difference_of(
    first: Edges | None, second: Edges | None, more_ns: float = 0.0, more_share: float = 0.0
) -> BootstrapDifference | None:
    """Second less first, less the allowed growth: a time, and a share of the first's magnitude.

    The draws of the second are permuted, since both samples use the same random numbers.
    """
    if first is None or second is None:
        return None
    order = np.random.default_rng(_SEED).permutation(second.lowest.size)
    low, high = (grown_by(edge, more_ns, more_share) for edge in (first.lowest, first.highest))
    return BootstrapDifference(
        second.lowest[order] - high, second.highest[order] - low, min(first.freedom, second.freedom)
    )
