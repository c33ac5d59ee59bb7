# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures of merged samples: observed values, and bounds that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastenough import words
from fastenough.analysis import bounds
from fastenough.analysis.blocks import LEAST_BLOCKS
from fastenough.analysis.merged import CountArray, FloatArray, Merged
from fastenough.analysis.resampling import LEAST_ABOVE

QUANTILES = (0.5, 0.95, 0.99, 0.999, 0.9999, 0.99999)
CONFIDENCE = 0.95
WITHIN_RUNS = "within these runs"
"""Where intervals hold: how much runs differ is no part of them."""


@dataclass(frozen=True)
class Quantile:
    """A quantile and its interval, in ns; None where the samples do not reach so far, with the reason.

    ``value_ns`` and ``upper_ns`` are upper edges of buckets, ``lower_ns`` is a lower edge: the interval
    holds whatever the values within a bucket were.  It comes from blocks of time (:mod:`resampling`), since values of
    one disturbance are no independent ones.  ``at_least_ns``: all that is known where it lies among values that were
    only counted.
    """

    quantile: float
    value_ns: float | None
    lower_ns: float | None
    upper_ns: float | None
    reason: str | None
    at_least_ns: float | None = None


@dataclass(frozen=True)
class Bound:
    """Upper bound on the rate of disturbances above the maximum of n activations (the exact form of 3/n)."""

    n: int
    confidence: float
    rate: float
    every_ns: float | None

    @property
    def text(self) -> str:
        """As printed: "at most 1 disturbance per 10,000 activations (10 s)"."""
        if self.n == 0:
            return "no bound: no samples, or some are missing"
        in_time = f" ({words.at_least(self.every_ns)})" if self.every_ns else ""
        return f"at most 1 disturbance per {int(1 / self.rate):,} activations{in_time}"


@dataclass(frozen=True)
class Measures:
    """All measures of merged samples; times in ns, None if not measured, or unknown because an imported source left
    values out.

    For jitter, quantiles above the median are of the magnitude; minimum, mean and median are signed.  ``scope``: where
    the intervals hold.  ``maximum_at_least_ns``: lower bound of a maximum that is unknown.
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
    scope: str = WITHIN_RUNS
    maximum_at_least_ns: float | None = None

    @property
    def reached_ns(self) -> float | None:
        """The maximum, or the lower bound of one that is unknown."""
        return self.maximum_ns if self.maximum_at_least_ns is None else self.maximum_at_least_ns

    def quantile(self, which: float) -> Quantile:
        return next(q for q in self.quantiles if q.quantile == which)


def bound_above_maximum(merged: Merged, confidence: float = CONFIDENCE) -> Bound:
    """Upper bound of the rate of disturbances above the maximum; none if values are missing, which may be above."""
    if merged.missed_uncharged or merged.lost:
        return Bound(0, confidence, 1.0, None)
    rate = bounds.unseen_rate(merged.judged, confidence)
    every_ns = None if merged.period_ns is None or merged.judged == 0 else merged.period_ns / rate
    return Bound(merged.judged, confidence, rate, every_ns)


def weakest_bound(merged: Sequence[Merged], confidence: float = CONFIDENCE) -> Bound:
    """The bound of the CPU with the least evidence; none if one CPU has none."""
    cpu_bounds = (bound_above_maximum(values, confidence) for values in merged)
    return min(cpu_bounds, key=lambda bound: bound.n, default=Bound(0, confidence, 1.0, None))


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
        return _Ranks(*merged.magnitudes)
    return _Ranks(*merged.edges_ns, merged.histogram.count)


@dataclass(frozen=True)
class _Overflow:
    """Values beyond the histograms of the sources of imported series.

    ``lost``: number of those that are not stored, since their maximum is unknown.  ``from_ns``: least value of all;
    ``last_from_ns``: greatest of the ends of the histograms; None without any.
    """

    lost: int
    from_ns: float | None
    last_from_ns: float | None


def _overflow(merged: Merged) -> _Overflow | None:
    """The overflow of all parts; None if a source does not state how many values it left out, or where they begin."""
    lost, least = 0, [] if merged.overflow_from_ns is None else [merged.overflow_from_ns]
    for run, series in merged.parts:
        source = series.source_summary
        if source is None:
            continue
        if source.omitted_count_unknown:
            return None
        if of_series := run.lost(series.id):
            end = run.totals[series.id].maximum
            if end is None or source.overflow is None:
                return None
            lost += of_series
            least.append((end + 1) * series.unit_ns)
    return _Overflow(lost, min(least, default=None), max(least, default=None))


def has_omitted_values(merged: Merged) -> bool:
    """Whether the source of an imported series left values out that are not stored."""
    overflow = _overflow(merged)
    return overflow is None or overflow.lost > 0


def quantile_of(merged: Merged, quantile: float, confidence: float = CONFIDENCE) -> Quantile:
    """One quantile, with its interval: of the stored values, and of those that were only counted by the source of an
    imported series."""
    overflow = _overflow(merged)
    if overflow is None:
        return Quantile(quantile, None, None, None, _NOT_COUNTED)
    n = merged.n + overflow.lost
    needed = _needed(quantile)
    if n < needed:
        return Quantile(quantile, None, None, None, f"n = {n:,} is too small: {needed:,} samples required")
    bucket = _bucket_of(merged, quantile, overflow)
    if bucket is None:
        return Quantile(
            quantile,
            None,
            None,
            None,
            f"at least {words.latency(overflow.from_ns)}: values from "
            "there on were only counted where this was imported from",
            overflow.from_ns,
        )
    _, value_ns = bucket
    resampled = None if overflow.lost else resampled_ranks(merged, quantile)
    if resampled is None:
        return Quantile(quantile, value_ns, None, None, _NO_INTERVAL)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(resampled, [tail, 1.0 - tail])
    ranks = _ranks(merged, quantile)
    return Quantile(
        quantile, value_ns, ranks.lowest(max(1, int(np.floor(low)))), ranks.highest(min(n, int(np.ceil(high)))), None
    )


def quantile_name(quantile: float) -> str:
    """Its printed name: "median", "99 %"."""
    return "median" if quantile == 0.5 else words.percent(quantile)


def _needed(quantile: float) -> int:
    return int(np.ceil(round(1 / (1 - quantile), 6)))


def _rank(n: int, quantile: float) -> int:
    return max(1, int(np.ceil(quantile * n - 1e-9)))


def quantile_range(merged: Merged, quantile: float, missed: int = 0) -> tuple[float, float] | None:
    """Least and greatest value, in ns, of the bucket that a quantile is read from; None where it is not printed.

    ``missed``: number of missed periods without a value, which rank above all values."""
    overflow = _overflow(merged)
    if overflow is None or merged.n + overflow.lost + missed < _needed(quantile):
        return None
    return _bucket_of(merged, quantile, overflow, missed)


def is_above_values(merged: Merged, quantile: float, missed: int) -> bool:
    """Whether a quantile of all activations lies among missed periods without a value."""
    return _rank(merged.n + missed, quantile) > merged.n


def _bucket_of(merged: Merged, quantile: float, overflow: _Overflow, missed: int = 0) -> tuple[float, float] | None:
    """Least and greatest value, in ns, of a quantile's bucket; None if it is above the values, or among those of the
    overflow."""
    rank = _rank(merged.n + overflow.lost + missed, quantile)
    if rank > merged.n:
        return None
    ranks = _ranks(merged, quantile)
    highest = ranks.highest(rank)
    return None if overflow.from_ns is not None and highest >= overflow.from_ns else (ranks.lowest(rank), highest)


def resampled_ranks(merged: Merged, quantile: float) -> FloatArray | None:
    """Ranks of a quantile in draws of blocks (jitter: of magnitudes, but for the median); None: no interval."""
    magnitudes = merged.two_sided and quantile > 0.5
    return (merged.magnitudes_over_time if magnitudes else merged.over_time).ranks(quantile)


_NOT_COUNTED = "unknown: the source of this import does not state how many values it left out, or where they begin"
_NO_INTERVAL = (
    f"needs {LEAST_BLOCKS} intervals of time, {LEAST_ABOVE} independent disturbances above the quantile, and no "
    "dependence that lasts longer than a block"
)


def measure(merged: Merged, confidence: float = CONFIDENCE) -> Measures:
    """All measures of merged samples."""
    histogram, known = merged.histogram, merged.known

    def in_ns(value: float | None) -> float | None:
        return None if value is None else value * merged.unit_ns

    return Measures(
        n=merged.n,
        lost=merged.lost,
        missed=merged.missed,
        duration_ns=merged.duration_ns,
        minimum_ns=in_ns(histogram.minimum) if known.minimum else None,
        mean_ns=in_ns(histogram.mean) if known.mean else None,
        standard_deviation_ns=in_ns(histogram.standard_deviation) if known.spread else None,
        maximum_ns=merged.known_maximum_ns,
        quantiles=tuple(quantile_of(merged, quantile, confidence) for quantile in QUANTILES),
        bound=bound_above_maximum(merged, confidence),
        maximum_at_least_ns=least_maximum_ns(merged),
    )


def least_maximum_ns(merged: Merged) -> float | None:
    """The least value that the maximum may have, where values without a known maximum were left out; None if the
    maximum is known."""
    if merged.known.maximum:
        return None
    overflow = _overflow(merged)
    least = [merged.maximum_ns, None if overflow is None else overflow.last_from_ns]
    return max((value_ns for value_ns in least if value_ns is not None), default=None)


def highest_frequency_hz(latency_ns: float | None) -> float | None:
    """Highest frequency at which this latency (jitter) is at most half the period: 1/(2 L); None where L <= 0."""
    return None if latency_ns is None or latency_ns <= 0 else 1e9 / (2 * latency_ns)
