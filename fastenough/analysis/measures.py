# SPDX-License-Identifier: GPL-2.0-or-later
"""The measures of merged samples: what was seen, and what that allows one to say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastenough import words
from fastenough.analysis import bounds
from fastenough.analysis.merged import CountArray, FloatArray, Merged

QUANTILES = (0.5, 0.95, 0.99, 0.999, 0.9999, 0.99999)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Quantile:
    """A quantile and its distribution-free interval, in ns; None where n does not reach so far, with the reason.

    ``value_ns`` and ``upper_ns`` are upper edges of buckets, ``lower_ns`` is a lower edge: the interval
    holds whatever the values within a bucket were.
    """

    quantile: float
    value_ns: float | None
    lower_ns: float | None
    upper_ns: float | None
    reason: str | None


@dataclass(frozen=True)
class Bound:
    """What n activations do not exclude above the maximum seen (the exact form of 3/n)."""

    n: int
    confidence: float
    rate: float
    every_ns: float | None

    @property
    def text(self) -> str:
        """As printed: "not excluded: one in every T"."""
        if self.n == 0:
            return "nothing is excluded: no sample"
        in_time = f" = one in every {words.duration(self.every_ns)}" if self.every_ns else ""
        return f"not excluded: one in every {int(1 / self.rate):,} activations{in_time}"


@dataclass(frozen=True)
class Measures:
    """All measures of merged samples; times in ns, None where there is nothing to measure.

    For jitter, quantiles above the median are of the magnitude; minimum, mean and median are signed.
    """

    n: int
    lost: int
    missed: int
    duration_ns: int
    minimum_ns: float | None
    mean_ns: float | None
    standard_deviation_ns: float | None
    maximum_ns: float | None
    quantiles: tuple[Quantile, ...]
    bound: Bound

    def quantile(self, which: float) -> Quantile:
        return next(q for q in self.quantiles if q.quantile == which)


def bound_above_maximum(merged: Merged, confidence: float = CONFIDENCE) -> Bound:
    """The rate of something worse than the maximum that these activations do not exclude."""
    rate = bounds.unseen_rate(merged.judged, confidence)
    every_ns = None if merged.period_ns is None or merged.judged == 0 else merged.period_ns / rate
    return Bound(merged.judged, confidence, rate, every_ns)


class _Ranks:
    """Values by rank, from buckets in ascending order."""

    def __init__(self, lowest: FloatArray, highest: FloatArray, count: CountArray) -> None:
        self._lowest, self._highest, self._up_to = lowest, highest, np.cumsum(count)

    def lowest(self, rank: int) -> float:
        return float(self._lowest[np.searchsorted(self._up_to, rank)])

    def highest(self, rank: int) -> float:
        return float(self._highest[np.searchsorted(self._up_to, rank)])


def _ranks(merged: Merged, quantile: float) -> _Ranks:
    """Signed values for the median; magnitudes for the tail of a jitter."""
    if merged.two_sided and quantile > 0.5:
        return _Ranks(*merged.magnitudes())
    return _Ranks(*merged.edges_ns(), merged.histogram.count)


def quantile_of(merged: Merged, quantile: float, confidence: float = CONFIDENCE) -> Quantile:
    """One quantile of the stored values, with its interval."""
    n = merged.n
    needed = int(np.ceil(round(1 / (1 - quantile), 6)))
    if n < needed:
        return Quantile(quantile, None, None, None, f"n = {n:,} is too small: {needed:,} samples are needed")
    ranks = _ranks(merged, quantile)
    lower, upper = bounds.quantile_ranks(quantile, n, confidence)
    reason = None
    if upper is None:
        enough = bounds.samples_for_quantile_upper(quantile, confidence)
        reason = f"n = {n:,} is too small for an upper end: {enough:,} samples are needed"
    elif lower is None:
        reason = f"n = {n:,} is too small for a lower end"
    return Quantile(
        quantile,
        ranks.highest(max(1, int(np.ceil(quantile * n - 1e-9)))),
        None if lower is None else ranks.lowest(lower),
        None if upper is None else ranks.highest(upper),
        reason,
    )


def measure(merged: Merged, confidence: float = CONFIDENCE) -> Measures:
    """All measures of merged samples."""
    histogram = merged.histogram

    def in_ns(value: float | None) -> float | None:
        return None if value is None else value * merged.unit_ns

    return Measures(
        n=merged.n, lost=merged.lost, missed=merged.missed, duration_ns=merged.duration_ns,
        minimum_ns=in_ns(histogram.minimum), mean_ns=in_ns(histogram.mean),
        standard_deviation_ns=in_ns(histogram.standard_deviation), maximum_ns=merged.maximum_ns,
        quantiles=tuple(quantile_of(merged, quantile, confidence) for quantile in QUANTILES),
        bound=bound_above_maximum(merged, confidence),
    )


def highest_frequency_hz(latency_ns: float | None) -> float | None:
    """Highest frequency at which this latency (jitter) is at most half the period: 1/(2 L); None where L <= 0."""
    return None if latency_ns is None or latency_ns <= 0 else 1e9 / (2 * latency_ns)
