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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.bounds import student_interval

LEAST_BOARDS_COMPARED = 3
"""Boards without which the variation between them is unknown."""
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class BoardDifference:
    """Mean difference over boards, with its confidence interval and the p-value of no difference.

    ``paired``: each of the ``boards`` was measured under both conditions.  ``board_sd``: standard deviation of the
    difference from board to board if paired, else of the levels of boards.
    """

    difference: float
    lower: float
    upper: float
    p_value: float
    paired: bool
    boards: int
    board_sd: float


def difference_over_boards(
    base: Mapping[str, float], other: Mapping[str, float], confidence: float
) -> BoardDifference | None:
    """The difference of the levels ``other`` - ``base``, by board; None with too few boards."""
    both = sorted(base.keys() & other.keys())
    if len(both) >= LEAST_BOARDS_COMPARED:
        differences = np.array([other[board] - base[board] for board in both])
        return _difference(float(differences.mean()), [differences], confidence, paired=True)
    first, second = (np.array([levels[board] for board in sorted(levels)]) for levels in (base, other))
    if min(first.size, second.size) < LEAST_BOARDS_COMPARED:
        return None
    return _difference(float(second.mean() - first.mean()), [first, second], confidence, paired=False)


def _difference(
    difference: float, samples: Sequence[FloatArray], confidence: float, *, paired: bool
) -> BoardDifference:
    """``samples``: the differences of boards if paired, else the levels of the boards under each condition."""
    error = math.sqrt(sum(float(sample.var(ddof=1)) / sample.size for sample in samples))
    lower, upper, p_value = student_interval(difference, error, min(sample.size for sample in samples) - 1, confidence)
    squares = sum(float(sample.var(ddof=1)) * (sample.size - 1) for sample in samples)
    board_sd = math.sqrt(squares / sum(sample.size - 1 for sample in samples))
    return BoardDifference(difference, lower, upper, p_value, paired, sum(sample.size for sample in samples), board_sd)
