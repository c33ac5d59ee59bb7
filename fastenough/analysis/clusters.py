# SPDX-License-Identifier: GPL-2.0-or-later
"""Rates of clustered events, on plain numbers (docs/method.md derives each).

Of ``n`` activations ``x`` exceeded a limit, in clusters of a mean ``size``, which is the factor by which the variance
of ``x`` is above that of independent activations.  ``x`` then carries as much evidence as ``x / size`` independent
events do, and these are Poisson (:mod:`sequential`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastenough.analysis import sequential, special

FloatArray = NDArray[np.float64]

LEAST_DISTURBANCES = 10
"""Least number of disturbances for a rate per activation; no method gives one with fewer."""
_LEAST_PIECES = 8
"""Least number of pieces of time from which the size of clusters can be estimated at a scale."""
_LEVEL = 0.01
"""Significance, at any scale, of dispersion beyond that of runs, from which on the estimate over time counts."""


def size_over_time(counts: NDArray[Any]) -> FloatArray:
    """Mean size of clusters from counts per interval, empty ones included, along the last axis: sum s^2/x - mean s.

    Values within an interval count as one cluster as far as the variance of counts indicates it; at least 1.
    """
    counts = counts.astype(np.float64)
    squares, total = (counts * counts).sum(axis=-1), counts.sum(axis=-1)
    return np.asarray(np.maximum(1.0, squares / np.maximum(total, 1.0) - counts.mean(axis=-1)))


def _size(counts: FloatArray) -> float:
    """:func:`size_over_time` of one row, several times as quick."""
    total = float(counts.sum())
    return max(1.0, float(counts @ counts) / max(total, 1.0) - total / counts.size)


def size_at_all_scales(counts: NDArray[Any]) -> float:
    """The greatest :func:`size_over_time` of intervals, of pairs of them, of fours, as long as there are enough pieces.

    Only longer pieces show causes that last longer than an interval, such as a busy hour with more stalls.  Such pieces
    are few: if the size at a scale exceeds that of intervals by more than a standard error, two standard errors are
    added.
    """
    if not counts.any():
        return 1.0
    counts = counts.astype(np.float64)
    size = own = _size(counts)
    for pieces in _coarser(counts):
        at_scale, error = _size(pieces), math.sqrt(2.0 / (pieces.size - 1))
        size = max(size, at_scale * (1.0 + 2.0 * error) if at_scale > own * (1.0 + error) else at_scale)
    return size


def _coarser(counts: FloatArray) -> Iterator[FloatArray]:
    """Sums of pairs of intervals, of fours, as long as there are enough pieces."""
    length = 2
    while counts.size // length >= _LEAST_PIECES:
        yield counts[: counts.size // length * length].reshape(-1, length).sum(axis=1)
        length *= 2


class ClusterSize(NamedTuple):
    """Mean size of clusters.

    ``error``: share of the standard error of an estimate over time, by which the mean may be too small; 0 where all
    runs are of one length and nothing over time contradicts that these are the clusters.
    """

    mean: float
    error: float


def cluster_size(x: int, runs: int, squares: float, *counts: NDArray[Any], independent: bool) -> ClusterSize:
    """Size of clusters of ``x`` exceedances in ``runs``, with the sum of squares of their lengths.

    ``counts``: exceedances per interval, at least and at most.  ``independent``: whether no dependence between runs was
    found.  If runs are spread over time like independent ones (index of dispersion, Fisher 1922), they are the
    clusters; otherwise the greatest size counts, from run lengths or from counts over time.
    """
    of_runs = max(1.0, squares / max(x, 1))
    if independent and all(_spread_like(intervals, of_runs) for intervals in counts):
        return ClusterSize(of_runs, min(1.0, math.sqrt(max(0.0, of_runs * runs / max(x, 1) - 1.0))))
    return ClusterSize(max(of_runs, *map(size_at_all_scales, counts)), 1.0)


def _spread_like(counts: NDArray[Any], size: float) -> bool:
    """Whether counts vary over time no more than those of independent clusters of this size, at each scale."""
    counts = counts.astype(np.float64)
    return all(_chance_of_dispersion(pieces, size) > _LEVEL for pieces in (counts, *_coarser(counts)))


def _chance_of_dispersion(pieces: FloatArray, size: float) -> float:
    """p-value of the dispersion; 1 where all exceedances lie behind the last whole piece."""
    total = float(pieces.sum())
    if not total:
        return 1.0
    dispersion = float(pieces @ pieces) / total - total / pieces.size
    return float(special.chdtrc(pieces.size - 1, pieces.size * dispersion / size))


def inflated(x: ArrayLike, size: ArrayLike, error: float = 1.0) -> FloatArray:
    """The size plus an allowance for its error, which is larger for fewer clusters; ``error``: see ClusterSize."""
    x, size = np.asarray(x, dtype=np.float64), np.asarray(size, dtype=np.float64)
    return np.asarray(size * (1.0 + error * np.sqrt(size / np.maximum(x, 1.0))))


def _with_longest(x: float, size: float, longest: float, error: float) -> tuple[float, float]:
    """Number of independent events, and exceedances of each, that leave room for one as long as the ``longest``.

    Fay and Feuer 1997 bound weighted sums of Poisson numbers as if one more event, as long as the longest, had been
    seen: y = x + longest exceedances with the variance v, which are y^2 / v events of v / y each.  That one event is
    what a bound of the Poisson mean adds to those seen.  With events all of one size these are x / size events.
    """
    e = float(inflated(x, size, error))
    longest = max(longest, e)
    total, variance = x + longest, e * x + longest * longest
    return max(0.0, total * total / variance - 1.0), variance / total


def rate_upper(n: float, x: float, size: float, longest: float, confidence: float, *, error: float = 1.0) -> float:
    """One-sided upper bound of the rate of exceedances per activation, valid at every look.

    ``size`` and its ``error``: see ClusterSize; ``longest``: exceedances that one more cluster may have.
    """
    events, per_event = _with_longest(x, size, longest, error)
    return min(1.0, per_event * sequential.events_upper(events, confidence) / n)


def rate_is_within(
    n: float, x: float, size: float, longest: float, *, allowed: float, confidence: float, error: float = 1.0
) -> bool:
    """Whether :func:`rate_upper` is at most the allowed rate; several times as quick."""
    events, per_event = _with_longest(x, size, longest, error)
    return sequential.log_evidence_below(events, n * allowed / per_event) >= sequential.log_required(confidence)


def chance_of_more(n: float, x: float, size: float, allowed: float, error: float = 1.0) -> float:
    """p-value of the allowed rate where more exceed than allowed, valid at every look."""
    e = float(inflated(x, size, error))
    return sequential.p_value(sequential.log_evidence_above(x / e, n * allowed / e))


def chance_where_most_exceed(n: float, x: float, intervals: int, allowed: float) -> float:
    """As :func:`chance_of_more`, if more than half of all activations exceed: the rest then forms the clusters.

    The clusters of a small rest are unknown, so they are assumed to be as long as an interval.
    """
    rest = n - x
    size = n / intervals
    e = float(inflated(max(rest, size), size))
    return sequential.p_value(sequential.log_evidence_below(rest / e, n * (1.0 - allowed) / e))


def holm(p_values: list[float], error: float) -> list[bool]:
    """Rejected hypotheses; the probability of any false rejection is at most ``error`` (Holm)."""
    rejected = [False] * len(p_values)
    for place, which in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[which] > error / (len(p_values) - place):
            break
        rejected[which] = True
    return rejected
