# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of boards and rates across boards, against exact values and simulated truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastenough.analysis.board_rates import (
    boards_needed,
    chance_of_homogeneity,
    detectable_variation,
    log_evidence_of_share,
    rate_of_new_board,
    share_upper,
    share_within,
)
from tests.support.presence import present

SURE = 0.95


def test_without_a_bad_board_the_bound_is_near_that_of_one_look() -> None:
    """Clopper and Pearson: 1 - 0.05^(1/n); being valid at every look costs a factor below 1.25."""
    for boards in (5, 10, 30, 100):
        exact = 1 - 0.05 ** (1 / boards)
        assert exact < share_upper(0, boards, SURE) < 1.25 * exact


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_bound_of_the_share_holds_at_every_look(share: float) -> None:
    """With as many bad boards as the hypothesis says, looked at after each of 300 boards."""
    random, fleets, boards = np.random.default_rng(1), 400, 300
    bad = np.cumsum(random.random((fleets, boards)) < share, axis=1)
    evidence = {
        (without, seen): log_evidence_of_share(without, seen, share)
        for seen in range(1, boards + 1)
        for without in set(bad[:, seen - 1].tolist())
    }
    wrong = [
        any(evidence[row[seen - 1], seen] >= math.log(20) for seen in range(1, boards + 1)) for row in bad.tolist()
    ]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / fleets)


def test_boards_that_are_wrongly_shown_are_paid_for() -> None:
    assert share_within(20, 20, SURE) == pytest.approx(1 - share_upper(0, 20, SURE) / SURE)
    assert share_within(0, 20, SURE) == share_within(1, 1, 0.999) == 0.0


@pytest.mark.parametrize(("without", "share"), [(0, 0.5), (0, 0.9), (1, 0.9), (3, 0.8)])
def test_needed_boards_are_the_fewest_that_suffice(without: int, share: float) -> None:
    boards = boards_needed(without, share, SURE)
    assert boards is not None
    assert share_within(boards - without, boards, SURE) >= share - 1e-9
    assert share_within(boards - 1 - without, boards - 1, SURE) < share
    assert boards_needed(without, 1 - 1e-6, SURE) is None


def test_homogeneity_is_exact_with_few_counts() -> None:
    """Two disturbances on two boards measured equally long: on one board in half of all cases, five in 1 of 16."""
    assert chance_of_homogeneity(np.array([2, 0]), np.ones(2)) == pytest.approx(1 / 2, abs=0.02)
    assert chance_of_homogeneity(np.array([5, 0]), np.ones(2)) == pytest.approx(1 / 16, abs=0.01)
    assert chance_of_homogeneity(np.zeros(9, dtype=np.int64), np.ones(9)) == 1.0


def test_a_quiet_board_measured_100_times_as_long_is_no_sign_of_one_rate() -> None:
    time, counts = np.array([100.0, 1.0, 1.0, 1.0]), np.array([0, 5, 5, 5])
    assert chance_of_homogeneity(counts, time) < 0.001
    assert chance_of_homogeneity(np.array([500, 5, 5, 5]), time) > 0.5


@pytest.mark.check
@pytest.mark.parametrize("time", [np.ones(8), np.geomspace(0.1, 10, 8)])
def test_boards_of_one_rate_are_rarely_called_different(time: np.ndarray) -> None:
    random, trials = np.random.default_rng(2), 150
    drawn = [chance_of_homogeneity(random.poisson(3 * time), time) <= 0.05 for _ in range(trials)]
    assert np.mean(drawn) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_few_boards_show_a_great_variation_only() -> None:
    few, many = (detectable_variation(20 * boards, np.ones(boards), 0.05) for boards in (3, 30))
    assert few is not None and many is not None and many < 0.4 < few
    assert detectable_variation(2, np.ones(3), 0.05) is None


@pytest.mark.check
@pytest.mark.parametrize("variation", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("boards", [3, 10])
def test_the_rate_of_a_new_board_is_covered(boards: int, variation: float) -> None:
    """docs/method.md has the figures of more fleets."""
    random, trials, mean = np.random.default_rng(3), 100, 5.0
    rates = np.full((trials, boards + 1), mean)
    if variation:
        rates = random.gamma(variation**-2, mean * variation**2, (trials, boards + 1))
    bounds = [rate_of_new_board(random.poisson(row[1:]), np.ones(boards), SURE) for row in rates]
    covered = np.mean([bound is not None and row[0] <= bound for bound, row in zip(bounds, rates, strict=True)])
    assert covered >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / trials)


def test_a_bound_for_a_new_board_needs_three_boards_and_narrows_with_more() -> None:
    assert rate_of_new_board(np.zeros(2, dtype=np.int64), np.ones(2), SURE) is None
    rates = (rate_of_new_board(np.full(boards, 20), np.ones(boards), SURE) for boards in (3, 5, 10, 30))
    bounds = [present(rate, "bound") for rate in rates]
    assert bounds == sorted(bounds, reverse=True)
    assert 20 < bounds[-1] < 40
