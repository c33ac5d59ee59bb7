# SPDX-License-Identifier: GPL-2.0-or-later
"""The extremal index: the share of values above a high threshold that begin a cluster.

n values whose extremal index is theta have the maximum of n theta independent ones (Leadbetter 1983), so that is their
effective n.  Two estimators, which err in different ways; the smaller is taken:

* runs (Smith and Weissman 1994): runs of consecutive exceedances divided by exceedances;
* intervals (Ferro and Segers 2003): from how unequal the times between exceedances are, without a length of runs that
  anybody would have to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.dependence import LEAST_INTERVALS
from fastenough.analysis.disturbances import OrderSource, disturbances
from fastenough.analysis.merged import Merged
from fastenough.recording.histogram import bucket_index, bucket_lowest

FloatArray = NDArray[np.float64]

_COARSE_K = 3
LEAST_AT_THRESHOLD = 20
"""Disturbances above a threshold, with fewer of which no extremal index is given."""


@dataclass(frozen=True)
class ExtremalIndex:
    """At a threshold: both estimates (None: cannot be told from this recording), and what they are worth."""

    threshold_ns: float
    exceeded: int
    disturbances: int
    by_runs: float | None
    by_intervals: float
    n: int

    @property
    def theta(self) -> float:
        """The smaller of the two: dependence is never understated."""
        return min(self.by_intervals, 1.0 if self.by_runs is None else self.by_runs)

    @property
    def effective_n(self) -> int:
        """As many independent activations would be as much evidence above the threshold; rounded down."""
        return int(self.n * self.theta)


def runs_estimator(exceeded: int, runs: int) -> float:
    """Runs of consecutive exceedances per exceedance."""
    return runs / exceeded


def intervals_estimator(times: FloatArray) -> float:
    """From the times between successive exceedances, in activations (1 and more); equation 5 of Ferro and Segers."""
    times = np.asarray(times, dtype=np.float64)
    if times.max() <= 2:
        theta = 2.0 * times.sum() ** 2 / (times.size * float((times * times).sum()))
    else:
        theta = 2.0 * (times - 1).sum() ** 2 / (times.size * float(((times - 1) * (times - 2)).sum()))
    return float(min(1.0, theta))


def times_between(counts: NDArray[np.int64], values: NDArray[np.int64], runs_per_exceedance: float) -> FloatArray:
    """Times between exceedances, in activations, from how many there are in each interval.

    Where in an interval they lie is not recorded: its runs are taken to lie evenly in it.
    """
    nonempty = np.flatnonzero(counts)
    runs = np.minimum(counts[nonempty], np.maximum(1, np.rint(counts[nonempty] * runs_per_exceedance))).astype(np.int64)
    begin = (np.cumsum(values) - values)[nonempty].astype(np.float64)
    step = values[nonempty] / runs
    times = np.repeat(begin + step / 2, runs) + np.repeat(step, runs) * _places(runs)
    within = np.ones(int((counts[nonempty] - runs).sum()))
    return np.concatenate([within, np.maximum(1.0, np.diff(times))])


def _places(runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 to runs - 1 for each."""
    return np.arange(int(runs.sum())) - np.repeat(np.cumsum(runs) - runs, runs)


def extremal_index(merged: Merged, threshold_ns: float) -> ExtremalIndex | None:
    """At one threshold, of one CPU; None where too few disturbances are above it, or nothing tells their order."""
    at_threshold = disturbances(merged, threshold_ns)
    order_known = at_threshold.source is not OrderSource.INTERVALS
    runs = at_threshold.most if order_known else max(1, round(at_threshold.possibly / at_threshold.size))
    if (
        runs < LEAST_AT_THRESHOLD
        or not at_threshold.counts.size
        or not (order_known or at_threshold.counts.size >= LEAST_INTERVALS)
    ):
        return None
    per_exceedance = runs_estimator(at_threshold.possibly, runs)
    times = times_between(at_threshold.counts, _values(merged), per_exceedance)
    return ExtremalIndex(
        threshold_ns,
        at_threshold.possibly,
        runs,
        per_exceedance if order_known else None,
        intervals_estimator(times),
        merged.judged,
    )


def _values(merged: Merged) -> NDArray[np.int64]:
    """How many values each interval of all runs holds."""
    counts = [recording.timeline.courses[series.id].count for recording, series in merged.parts]
    return np.concatenate(counts)


def extremal_indices(merged: Merged, limit: int = 6) -> list[ExtremalIndex]:
    """Of one CPU at the highest thresholds with enough disturbances, downwards, and none below the median."""
    indices: list[ExtremalIndex] = []
    for threshold_ns in _thresholds(merged):
        index = extremal_index(merged, threshold_ns)
        if index is not None:
            indices.append(index)
        if len(indices) == limit:
            break
    return indices


def _thresholds(merged: Merged) -> list[float]:
    """Just below the edges of the coarse scale that lie between the median and the maximum, descending, in ns."""
    _, highest, count = merged.magnitudes
    if not count.size:
        return []
    upper = highest[np.cumsum(count) > merged.n / 2] / merged.unit_ns
    edges = np.unique(bucket_index(np.maximum(upper, 1).astype(np.int64), min(_COARSE_K, merged.histogram.k)))
    lowest = bucket_lowest(edges[::-1], min(_COARSE_K, merged.histogram.k))
    return [float(low - 1) * merged.unit_ns for low in lowest if low > 1]
