# SPDX-License-Identifier: GPL-2.0-or-later
"""Rates of clustered events, on plain numbers or arrays of them (docs/method.md derives each).

Of ``n`` activations ``x`` exceeded a limit, in clusters of a mean ``size``, which is the factor by which the variance
of ``x`` is above that of independent activations.  ``x`` then carries as much evidence as ``x / size`` independent
events do, and these are Poisson: Garwood 1936.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FloatArray = NDArray[np.float64]

LEAST_DISTURBANCES = 10
"""Least number of disturbances for a rate per activation; no method gives one with fewer."""
_LEAST_PIECES = 8
"""Of time, from which the size of clusters can be estimated at a scale."""


def confidence_of_look(confidence: float, look: int) -> float:
    """That of a look at a question that was judged ``look`` times before; the first one may err as stated.

    The k-th further one may err 1 / (k (k + 1)) times as often, to two digits: these add up to 1, so that all that
    follow the first, however many they are, err together no more often than it does.
    """
    if look == 0:
        return confidence
    error = (1.0 - confidence) / (look * (look + 1))
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    return 1.0 - math.floor(error / unit + 1e-6) * unit


def poisson_upper(seen: ArrayLike, confidence: float) -> FloatArray:
    """Upper bound of the mean of a Poisson number: chi2(C; 2d + 2) / 2."""
    return np.asarray(special.gammaincinv(np.asarray(seen) + 1.0, confidence))


def poisson_lower(seen: ArrayLike, confidence: float) -> FloatArray:
    """Lower bound of the mean of a Poisson number: chi2(1 - C; 2d) / 2, and 0 for none."""
    seen = np.asarray(seen, dtype=np.float64)
    return np.where(seen > 0, special.gammaincinv(np.maximum(seen, 1e-9), 1.0 - confidence), 0.0)


def size_over_time(counts: NDArray[Any]) -> FloatArray:
    """Mean size of clusters from counts per interval, empty ones included, along the last axis: sum s^2/x - mean s.

    What lies within an interval counts as one cluster as far as its variance says so; at least 1.
    """
    counts = counts.astype(np.float64)
    squares, total = (counts * counts).sum(axis=-1), counts.sum(axis=-1)
    return np.asarray(np.maximum(1.0, squares / np.maximum(total, 1.0) - counts.mean(axis=-1)))


def _size(counts: FloatArray) -> float:
    """:func:`size_over_time` of one row, several times as quick."""
    total = float(counts.sum())
    return max(1.0, float(counts @ counts) / max(total, 1.0) - total / counts.size)


def size_at_all_scales(counts: NDArray[Any]) -> float:
    """The greatest of :func:`size_over_time` of intervals, of pairs of them, of fours, as long as there are enough.

    What lasts longer than an interval, such as a busy hour in which stalls come more often, shows only there; and there
    pieces are few, so where a scale says more than the intervals do, by over a standard error, two of these are added.
    """
    if not counts.any():
        return 1.0
    counts = counts.astype(np.float64)
    size = own = _size(counts)
    length = 2
    while counts.size // length >= _LEAST_PIECES:
        pieces = counts[: counts.size // length * length].reshape(-1, length).sum(axis=1)
        found, error = _size(pieces), math.sqrt(2.0 / (pieces.size - 1))
        size = max(size, found * (1.0 + 2.0 * error) if found > own * (1.0 + error) else found)
        length *= 2
    return size


def size_of(x: int, squares: float, *counts: NDArray[Any]) -> float:
    """The greatest size supported by runs (sum of squares of their lengths) and by counts per interval."""
    return max(1.0, squares / max(x, 1), *map(size_at_all_scales, counts))


def inflated(x: ArrayLike, size: ArrayLike) -> FloatArray:
    """The size plus an allowance for its error, which is larger for fewer clusters."""
    x, size = np.asarray(x, dtype=np.float64), np.asarray(size, dtype=np.float64)
    return np.asarray(size * (1.0 + np.sqrt(size / np.maximum(x, 1.0))))


def rate_upper(n: ArrayLike, x: ArrayLike, size: ArrayLike, longest: ArrayLike, confidence: float) -> FloatArray:
    """One-sided upper bound of the rate of exceedances per activation.

    As if one more disturbance, as long as the ``longest``, had been seen: so Fay and Feuer 1997 bound weighted sums of
    Poisson numbers.  With clusters all of one size this is that size times :func:`poisson_upper`.
    """
    e = inflated(x, size)
    longest = np.maximum(longest, e)
    total, variance = np.asarray(x) + longest, e * np.asarray(x) + longest * longest
    mean = special.gammaincinv(total * total / variance, confidence) * variance / total
    return np.asarray(np.minimum(1.0, mean / np.asarray(n)))


def rate_lower(n: ArrayLike, x: ArrayLike, size: ArrayLike, confidence: float) -> FloatArray:
    """One-sided lower bound of the rate of exceedances per activation."""
    e = inflated(x, size)
    return np.asarray(e * poisson_lower(np.asarray(x) / e, confidence) / np.asarray(n))


def chance_of_more(n: ArrayLike, x: ArrayLike, size: ArrayLike, allowed: float) -> FloatArray:
    """p-value: probability of at least this many exceedances at the allowed rate; inverse of :func:`rate_lower`."""
    e = inflated(x, size)
    events = np.asarray(x) / e
    return np.where(events > 0, special.gammainc(np.maximum(events, 1e-9), np.asarray(n) * allowed / e), 1.0)


def chance_where_most_exceed(n: float, x: float, intervals: int, allowed: float) -> float:
    """The same where more than half of all activations exceed: what comes in clusters is then the rest.

    Of a rest of which little or nothing was seen nobody knows the clusters, so they are taken to be as long as an
    interval.
    """
    rest = n - x
    size = n / intervals
    e = float(inflated(max(rest, size), size))
    return float(special.gammaincc(rest / e + 1.0, n * (1.0 - allowed) / e))


def holm(p_values: list[float], error: float) -> list[bool]:
    """Rejected hypotheses; the probability of any false rejection is at most ``error`` (Holm)."""
    rejected = [False] * len(p_values)
    for place, which in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[which] > error / (len(p_values) - place):
            break
        rejected[which] = True
    return rejected
