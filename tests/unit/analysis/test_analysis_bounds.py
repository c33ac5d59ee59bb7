# SPDX-License-Identifier: GPL-2.0-or-later
"""Bounds and intervals hold the confidence they state: counted over seeded simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis import bounds

TRIALS = 2000


def _binomial_allowance(confidence: float) -> float:
    """Least share of 2000 trials that a bound of true coverage ``confidence`` shows, but for 1 in 10,000 seeds."""
    return float(stats.binom.ppf(1e-4, TRIALS, confidence)) / TRIALS


def test_the_rule_of_three_is_what_the_exact_bound_tends_to() -> None:
    for n in (1000, 10**5, 20 * 10**9):
        assert bounds.unseen_rate(n, 0.95) * n == pytest.approx(2.9957, rel=0.002)
    assert bounds.unseen_rate(0, 0.95) == 1.0
    assert bounds.unseen_rate(1, 0.95) == pytest.approx(0.95)


def test_samples_for_an_unseen_rate_are_just_enough() -> None:
    for rate in (0.5, 1e-3, 1e-4, 1e-9):
        n = bounds.samples_for_unseen_rate(rate, 0.95)
        assert bounds.unseen_rate(n, 0.95) <= rate < bounds.unseen_rate(n - 1, 0.95)
    assert bounds.samples_for_unseen_rate(1e-4, 0.95) == 29_956


@pytest.mark.parametrize("rate", [0.0005, 0.01, 0.3])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_rate_bounds_hold_their_confidence(rate: float, confidence: float) -> None:
    random = np.random.default_rng(7)
    seen = random.binomial(3000, rate, TRIALS)
    above = np.mean([bounds.rate_upper(int(x), 3000, confidence) >= rate for x in seen])
    below = np.mean([bounds.rate_lower(int(x), 3000, confidence) <= rate for x in seen])
    assert above >= _binomial_allowance(confidence)
    assert below >= _binomial_allowance(confidence)


@pytest.mark.parametrize(("exceeded", "n"), [(1, 50), (7, 3000), (49, 50), (3, 20 * 10**9)])
def test_rate_bounds_are_where_the_tail_has_its_stated_size(exceeded: int, n: int) -> None:
    upper, lower = bounds.rate_upper(exceeded, n, 0.95), bounds.rate_lower(exceeded, n, 0.95)
    assert stats.binom.cdf(exceeded, n, upper) == pytest.approx(0.05, rel=1e-6)
    assert stats.binom.sf(exceeded - 1, n, lower) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.check
@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [500, 5000])
def test_quantile_intervals_hold_their_confidence(quantile: float, n: int) -> None:
    random = np.random.default_rng(11)
    truth = float(stats.lognorm(0.5).ppf(quantile))
    lower, upper = bounds.quantile_ranks(quantile, n, 0.95)
    assert lower is not None and upper is not None
    values = np.sort(stats.lognorm(0.5).rvs((TRIALS, n), random_state=random), axis=1)
    held = np.mean((values[:, lower - 1] <= truth) & (truth <= values[:, upper - 1]))
    assert held >= _binomial_allowance(0.95)
    assert held <= 0.985, "the interval is needlessly wide"


def test_a_quantile_beyond_the_samples_has_no_upper_end() -> None:
    assert bounds.quantile_ranks(0.999, 2000, 0.95)[1] is None
    enough = bounds.samples_for_quantile_upper(0.999, 0.95)
    assert bounds.quantile_ranks(0.999, enough, 0.95)[1] is not None
    assert bounds.quantile_ranks(0.999, enough - 2, 0.95)[1] is None


def test_the_one_sided_quantile_bound_holds() -> None:
    random = np.random.default_rng(13)
    rank = bounds.quantile_upper_rank(0.95, 400, 0.95)
    assert rank is not None
    values = np.sort(random.random((TRIALS, 400)), axis=1)
    assert np.mean(values[:, rank - 1] >= 0.95) >= _binomial_allowance(0.95)
    assert bounds.quantile_upper_rank(0.999, 2000, 0.95) is None


def test_the_bound_holds_for_a_limit_chosen_as_the_sample_maximum() -> None:
    random = np.random.default_rng(17)
    beyond = 1.0 - random.random((TRIALS, 1000)).max(axis=1)
    assert np.mean(beyond <= bounds.unseen_rate(1000, 0.95)) >= _binomial_allowance(0.95)


def test_samples_for_a_rate_settle_it() -> None:
    needed = bounds.samples_for_rate(0.05, 0.04, 0.95)
    assert needed is not None
    assert bounds.rate_upper(int(np.ceil(0.04 * needed)), needed, 0.95) <= 0.05
    assert bounds.samples_for_rate(0.05, 0.05, 0.95) is None


@pytest.mark.parametrize(("p1", "p2"), [(0.01, 0.01), (0.002, 0.01), (0.3, 0.1)])
def test_rate_difference_intervals_hold_their_confidence(p1: float, p2: float) -> None:
    random = np.random.default_rng(19)
    ones, twos = random.binomial(4000, p1, TRIALS), random.binomial(6000, p2, TRIALS)
    held = 0
    for one, two in zip(ones, twos, strict=True):
        low, high = bounds.rate_difference((int(one), 4000), (int(two), 6000), 0.95)
        held += low <= p2 - p1 <= high
    assert held / TRIALS >= 0.935
