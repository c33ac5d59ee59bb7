# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences over boards: the interval covers the truth as often as it states, however much boards differ."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis.between_boards import difference_over_boards

TRUTH = 0.1
TRIALS = 2000
Levels = dict[str, float]


def _paired(random: np.random.Generator, boards: int) -> tuple[Levels, Levels]:
    """Boards with both conditions; boards differ by 0.5, the effect differs from board to board by 0.1."""
    own = random.normal(0.0, 0.5, boards)
    effect = TRUTH + random.normal(0.0, 0.1, boards)
    noise = random.normal(0.0, 0.05, (2, boards))
    names = [f"board {number}" for number in range(boards)]
    return dict(zip(names, own + noise[0], strict=True)), dict(zip(names, own + effect + noise[1], strict=True))


def _two_samples(random: np.random.Generator, boards: int) -> tuple[Levels, Levels]:
    """Boards with one condition each, half as many with the other one, which vary twice as much."""
    base = {f"base {number}": random.normal(0.0, 0.5) for number in range(boards)}
    return base, {f"other {number}": random.normal(TRUTH, 1.0) for number in range(boards // 2)}


@pytest.mark.check
@pytest.mark.parametrize("made", [_paired, _two_samples])
@pytest.mark.parametrize("boards", [6, 20])
def test_the_interval_covers_the_truth_as_often_as_stated(
    made: Callable[[np.random.Generator, int], tuple[Levels, Levels]], boards: int
) -> None:
    random = np.random.default_rng(boards)
    covered = 0
    for _ in range(TRIALS):
        found = difference_over_boards(*made(random, boards), 0.95)
        assert found is not None and found.paired is (made is _paired)
        covered += found.lower <= TRUTH <= found.upper
    error = math.sqrt(0.95 * 0.05 / TRIALS)
    print(f"coverage of 95 %: {covered / TRIALS:.4f}, standard error {error:.4f} ({made.__name__}, {boards} boards)")
    assert covered / TRIALS >= 0.95 - 4 * error
    assert covered / TRIALS <= (0.95 + 4 * error if made is _paired else 0.99)


@pytest.mark.check
def test_values_of_one_board_are_not_the_unit() -> None:
    """Hours of three boards, treated as independent, would show differences that are not there."""
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(500):
        levels = random.normal(0.0, 0.5, (2, 3))
        hours = levels[:, :, np.newaxis] + random.normal(0.0, 0.1, (2, 3, 200))
        naive = stats.ttest_ind(hours[0].ravel(), hours[1].ravel()).pvalue
        base, other = (
            {str((side, number)): float(hours[side, number].mean()) for number in range(3)} for side in (0, 1)
        )
        found = difference_over_boards(base, other, 0.95)
        assert found is not None
        covered += found.lower <= 0.0 <= found.upper
        assert found.p_value >= naive
    assert covered / 500 > 0.92


def test_the_same_as_scipy() -> None:
    random = np.random.default_rng(2)
    base, other = _paired(random, 9)
    names = sorted(base)
    found = difference_over_boards(base, other, 0.9)
    expected = stats.ttest_rel([other[name] for name in names], [base[name] for name in names])
    interval = expected.confidence_interval(0.9)
    assert found is not None
    assert (found.lower, found.upper, found.p_value) == pytest.approx((interval.low, interval.high, expected.pvalue))
    base, other = _two_samples(random, 9)
    found = difference_over_boards(base, other, 0.9)
    welch = stats.ttest_ind(list(other.values()), list(base.values()), equal_var=False)
    assert found is not None
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(welch.statistic), 3))


def test_too_few_boards_show_nothing_and_equal_ones_no_difference() -> None:
    levels = {"a": 1.0, "b": 2.0}
    assert difference_over_boards(levels, levels, 0.95) is None
    same = difference_over_boards(levels | {"c": 3.0}, levels | {"c": 3.0}, 0.95)
    assert same is not None and (same.difference, same.lower, same.upper, same.p_value) == (0.0, 0.0, 0.0, 1.0)
