# SPDX-License-Identifier: GPL-2.0-or-later
"""Sequential detection of a change in the level of a series, with a stated number of false alarms.

Each value is ranked among itself and all values before it since the last alarm.  While nothing changes such sequential
ranks are independent and uniform, whatever the distribution.  Evidence against that is gathered as by Shiryaev (1963)
and Roberts (1966), with ranks as by Gordon and Pollak (1995); it is an e-detector (Shin, Ramdas and Rinaldo 2024).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import special

FloatArray = NDArray[np.float64]

LEAST_BEFORE = 20
"""Values that an alarm needs before the first that counts as evidence."""
_SHIFTS = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
"""Changes of level that are looked for, in standard deviations of normal scores."""
_LAG = 20
"""Dependence is estimated from values at least so old, which a change is unlikely to have reached."""
_SEED = 20260101


@dataclass(frozen=True)
class Alarm:
    """``place``: of the value at which a change was shown; ``rises``: whether the level rose."""

    place: int
    rises: bool


def sequential_ranks(values: FloatArray) -> NDArray[np.int64]:
    """Rank of each value, from 1, among itself and those before it (T,).  Equal values are ordered by fixed draws."""
    draws = np.random.default_rng(_SEED).random(values.size).tolist()
    ordered: list[float] = []
    ranks = np.empty(values.size, dtype=np.int64)
    for place, (value, draw) in enumerate(zip(values.tolist(), draws, strict=True)):
        below = bisect_left(ordered, value)
        ranks[place] = below + 1 + int(draw * (bisect_right(ordered, value) - below + 1))
        insort(ordered, value)
    return ranks


def first_alarm(values: FloatArray, mean_between: float) -> Alarm | None:
    """The first change that values (T,) show; None where they show none.

    Of independent values alike, N give at most N / ``mean_between`` false alarms on average, for every N, if the
    search starts again after each alarm with the values behind it.
    """
    if values.size <= LEAST_BEFORE:
        return None
    ranks = sequential_ranks(values)
    gains = (_log_ratios(ranks) * _weights(ranks)[:, None])[LEAST_BEFORE:].tolist()
    evidence = [0.0] * _SHIFTS.size
    for place, row in enumerate(np.exp(gains).tolist(), LEAST_BEFORE):
        evidence = [(1.0 + before) * ratio for before, ratio in zip(evidence, row, strict=True)]
        if sum(evidence) >= mean_between * _SHIFTS.size:
            return Alarm(place, evidence.index(max(evidence)) >= _SHIFTS.size // 2)
    return None


def _log_ratios(ranks: NDArray[np.int64]) -> FloatArray:
    """Log likelihood ratios (T, shifts) of each rank if normal scores shift, against no shift.

    The density is averaged over the rank's share of (0, 1), so that the mean of the ratio over all ranks is exactly 1.
    """
    count = np.arange(1, ranks.size + 1)
    upper, lower = (special.ndtri(edge / count)[:, None] for edge in (ranks, ranks - 1))
    shares = special.ndtr(upper - _SHIFTS) - special.ndtr(lower - _SHIFTS)
    return np.asarray(np.log(np.maximum(shares * count[:, None], 1e-300)))


def _weights(ranks: NDArray[np.int64]) -> FloatArray:
    """Share (T,) of each value's evidence that counts: that of independent values in as many dependent ones.

    (1 - r) / (1 + r) with the autocorrelation r of earlier scores.  A power below 1 that earlier values decide does not
    raise the mean of a likelihood ratio (Jensen), so the number of false alarms still holds.
    """
    scores = special.ndtri((ranks - 0.5) / np.arange(1, ranks.size + 1))
    until = np.maximum(np.arange(ranks.size) - _LAG, LEAST_BEFORE)
    until = np.minimum(until, np.maximum(np.arange(ranks.size), 2))
    sums, squares, products = (
        np.concatenate([[0.0], np.cumsum(part)])
        for part in (scores, scores**2, np.concatenate([[0.0], scores[1:] * scores[:-1]]))
    )
    mean = sums[until] / until
    variance = squares[until] - until * mean**2
    covariance = products[until] - mean * (2 * sums[until] - scores[0] - scores[until - 1]) + (until - 1) * mean**2
    correlation = np.clip(covariance / np.maximum(variance, 1e-9), 0.0, 0.95)
    return np.asarray((1 - correlation) / (1 + correlation))
