# SPDX-License-Identifier: GPL-2.0-or-later
"""Distribution-free bounds from a finite number of samples, on plain numbers.

All of it takes activations as independent.  Real ones come in bursts, so the bounds are the best that
could be said of n samples, never an overstatement of how bad it is.

Sources: Clopper & Pearson 1934 (rates); David & Nagaraja, Order Statistics, section 7.1 (quantiles);
Hanley & Lippman-Hand 1983 (the rule of three, of which the exact form is used); Newcombe 1998, method 10
(differences of rates).  Only the interval of a difference of means has a distribution: Student's (1908).
"""

from __future__ import annotations

import math

import numpy as np

from fastenough.analysis import special

_LEAST_CHANCE = 1e-9
"""Smallest p-value that is reported."""
_HALVINGS = 40


def rate_upper(exceeded: int, n: int, confidence: float) -> float:
    """One-sided upper bound of a rate, from ``exceeded`` of ``n`` (Clopper-Pearson)."""
    if exceeded >= n:
        return 1.0
    if exceeded == 0:
        return unseen_rate(n, confidence)
    return float(special.betaincinv(exceeded + 1, n - exceeded, confidence))


def rate_lower(exceeded: int, n: int, confidence: float) -> float:
    """One-sided lower bound of a rate, from ``exceeded`` of ``n`` (Clopper-Pearson)."""
    if exceeded == 0:
        return 0.0
    return float(special.betaincinv(exceeded, n - exceeded + 1, 1.0 - confidence))


def unseen_rate(n: int, confidence: float) -> float:
    """Upper bound of a rate after ``n`` activations without a case: 1 - (1 - c)^(1/n), about 3/n."""
    if n == 0:
        return 1.0
    return -math.expm1(math.log1p(-confidence) / n)


def samples_for_unseen_rate(rate: float, confidence: float) -> int:
    """Number of activations without a case for which :func:`unseen_rate` is at most ``rate``."""
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate))


def samples_for_rate(allowed: float, rate: float, confidence: float) -> int | None:
    """Number of samples, at the observed rate, for an upper bound within ``allowed``; None if no number suffices."""
    if rate >= allowed:
        return None
    low, high = 0, samples_for_unseen_rate(allowed, confidence)
    while rate_upper(math.ceil(rate * high), high, confidence) > allowed:
        low, high = high, high * 2
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        if rate_upper(math.ceil(rate * middle), middle, confidence) > allowed:
            low = middle
        else:
            high = middle
    return high


def _binomial_quantile(share: float, n: int, probability: float) -> int:
    """Least k for which at most k successes in n have a chance of ``share``.

    As scipy.stats has it, which takes a second to load; scipy.special is enough.
    """
    k = math.ceil(special.bdtrik(share, n, probability))
    return k - 1 if k > 0 and special.bdtr(k - 1, n, probability) >= share else k


def quantile_ranks(quantile: float, n: int, confidence: float) -> tuple[int | None, int | None]:
    """1-based ranks of the two-sided confidence interval of the quantile; None: beyond the samples."""
    tail = (1.0 - confidence) / 2.0
    lower = _binomial_quantile(tail, n, quantile)
    upper = _binomial_quantile(1.0 - tail, n, quantile) + 1
    return (lower if lower >= 1 else None), (upper if upper <= n else None)


def quantile_upper_rank(quantile: float, n: int, confidence: float) -> int | None:
    """Rank of the one-sided upper bound of the quantile; None if n is too small."""
    rank = _binomial_quantile(confidence, n, quantile) + 1
    return rank if rank <= n else None


def samples_for_quantile_upper(quantile: float, confidence: float) -> int:
    """Least number of samples for an upper end of the two-sided interval of the quantile."""
    return samples_for_unseen_rate(1.0 - quantile, (1.0 + confidence) / 2.0)


def _wilson(exceeded: float, n: float, z: float) -> tuple[float, float]:
    rate = exceeded / n
    centre = rate + z * z / (2 * n)
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return (centre - spread) / scale, (centre + spread) / scale


def rate_difference(first: tuple[float, float], second: tuple[float, float], confidence: float) -> tuple[float, float]:
    """Interval of (rate of second - rate of first); each is (exceeded, n), independent ones, with n > 0."""
    z = float(special.ndtri((1 + confidence) / 2))
    p1, p2 = first[0] / first[1], second[0] / second[1]
    (l1, u1), (l2, u2) = _wilson(*first, z), _wilson(*second, z)
    difference = p2 - p1
    return (difference - float(np.hypot(p2 - l2, u1 - p1)), difference + float(np.hypot(u2 - p2, p1 - l1)))


def chance_of_equal_rates(first: tuple[float, float], second: tuple[float, float]) -> float:
    """p-value: the least error at which :func:`rate_difference` excludes zero."""
    low, high = _LEAST_CHANCE, 1.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        lower, upper = rate_difference(first, second, 1.0 - middle)
        low, high = (low, middle) if lower > 0 or upper < 0 else (middle, high)
    return high


def student_interval(difference: float, error: float, degrees: float, confidence: float) -> tuple[float, float, float]:
    """The ends of the interval of a difference of means with this standard error, and the p-value of no difference."""
    if error == 0:
        return difference, difference, float(difference == 0)
    width = float(special.stdtrit(degrees, (1 + confidence) / 2)) * error
    return difference - width, difference + width, 2 * float(special.stdtr(degrees, -abs(difference) / error))
