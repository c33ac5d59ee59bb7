# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare two conditions over boards, with the variation between boards: the board is the unit.

Two levels: each board gives one level per condition, the mean of its values however many there are, and Student's
distribution over boards gives the interval.  Boards that were measured under both conditions are compared with
themselves, so that their own differences cancel; with fewer than three of these, the boards of both conditions are two
samples of unequal variance, with the degrees of freedom of the smaller one: the interval then covers at least as often
as stated (Hsu 1938, Mickey and Brown 1966), where Welch's covers 92 % of cases instead of 95 % with six and three
boards.  Values of one board may depend on each other: they are not the unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

LEAST_BOARDS_COMPARED = 3
"""Boards without which the variation between them is unknown."""
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class BoardDifference:
    """Mean difference over boards, with its confidence interval and the p-value of no difference.

    ``paired``: each of the ``boards`` was measured under both conditions.  ``between``: standard deviation of the
    difference from board to board if paired, else of the levels of boards.
    """

    difference: float
    lower: float
    upper: float
    p_value: float
    paired: bool
    boards: int
    between: float


def difference_over_boards(
    base: Mapping[str, float], other: Mapping[str, float], confidence: float
) -> BoardDifference | None:
    """The difference of the levels ``other`` - ``base``, by board; None with too few boards."""
    both = sorted(base.keys() & other.keys())
    if len(both) >= LEAST_BOARDS_COMPARED:
        differences = np.array([other[board] - base[board] for board in both])
        error = _variance_of_mean(differences)
        return _interval(float(differences.mean()), error, differences.size - 1.0, confidence, differences)
    samples = [np.array([levels[board] for board in sorted(levels)]) for levels in (base, other)]
    if min(sample.size for sample in samples) < LEAST_BOARDS_COMPARED:
        return None
    errors = np.array([_variance_of_mean(sample) for sample in samples])
    degrees = min(sample.size for sample in samples) - 1.0
    difference = float(samples[1].mean() - samples[0].mean())
    return _interval(difference, float(errors.sum()), degrees, confidence, samples)


def _variance_of_mean(values: FloatArray) -> float:
    return float(values.var(ddof=1)) / values.size


def _interval(
    difference: float,
    error: float,
    degrees: float,
    confidence: float,
    values: FloatArray | list[FloatArray],
) -> BoardDifference:
    """``error``: variance of the difference; ``values``: differences of boards, or the levels of two samples."""
    spread = error**0.5
    width = float(special.stdtrit(degrees, (1.0 + confidence) / 2.0)) * spread
    beyond = abs(difference) / spread if spread > 0 else np.inf if difference else 0.0
    p_value = 2.0 * float(special.stdtr(degrees, -beyond))
    paired = isinstance(values, np.ndarray)
    samples = [values] if isinstance(values, np.ndarray) else values
    freedom = sum(sample.size - 1 for sample in samples)
    between = (sum(float(sample.var(ddof=1)) * (sample.size - 1) for sample in samples) / freedom) ** 0.5
    boards = sum(sample.size for sample in samples)
    return BoardDifference(difference, difference - width, difference + width, p_value, paired, boards, between)
