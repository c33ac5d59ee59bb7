# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence from pairs in random order: exact over all orders, valid at every look, and quick for a clear effect."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis.paired_evidence import (
    BoolArray,
    FloatArray,
    evidence_together,
    sequential,
    sequential_evidence,
)
from tests.support.paired_truth import courses

CONFIDENCE, REQUIRED = 0.95, 20.0


def of_order(first_less_second: FloatArray, change_first: BoolArray) -> FloatArray:
    """Differences of pairs whose runs have the same values whichever of them has the change."""
    return np.where(change_first, first_less_second, -first_less_second)


@pytest.mark.parametrize(
    "runs",
    [
        np.array([1.0, -2.0, 0.5, 3.0, -1.0, 0.0, 2.5, 1.5]),
        np.full(8, 10.0),
        np.array([10.0, -10.0] * 4),
        np.array([1e6, 1, 2, 3, 4, -1e9, 6, 7]),
    ],
    ids=["any", "drift", "period of two pairs", "outliers"],
)
def test_over_all_orders_the_mean_is_one_without_an_effect(runs: FloatArray) -> None:
    """Whatever the runs are: no order of bets wins on average, at any number of pairs."""
    for pairs in (1, 5, 8):
        orders = [np.array(order) for order in product((True, False), repeat=pairs)]
        differences = [of_order(runs[:pairs], order) for order in orders]
        evidence = [sequential_evidence(one, one, order) for one, order in zip(differences, orders, strict=True)]
        assert np.mean(evidence) == pytest.approx(1.0, rel=1e-9)


def test_buckets_only_take_evidence_away() -> None:
    runs = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 0.2, 2.5])
    orders = [np.array(order) for order in product((True, False), repeat=runs.size)]
    evidence = [
        sequential_evidence(of_order(runs, order) - 0.5, of_order(runs, order) + 0.5, order) for order in orders
    ]
    assert 0.1 < np.mean(evidence) < 1.0


def test_six_pairs_decide_and_five_have_no_interval() -> None:
    orders = np.array([True, False] * 3)
    clear = np.array([9.0, 10.0, 11.0, 10.0, 9.5, 10.5])
    found = sequential(clear, clear, orders, CONFIDENCE)
    assert REQUIRED < found.evidence < 2**6 / 2
    assert 0 < found.lower < found.effect < found.upper < 20
    few = sequential(clear[:5], clear[:5], orders[:5], CONFIDENCE)
    assert (few.lower, few.upper) == (-np.inf, np.inf) and few.evidence < REQUIRED


def test_an_interval_moves_with_the_pairs_and_turns_with_them() -> None:
    random = np.random.default_rng(1)
    pairs, orders = random.normal(1, 1, 12), random.random(12) < 0.5
    at_zero, moved, turned = (sequential(each, each, orders, CONFIDENCE) for each in (pairs, pairs + 5, -pairs))
    for one, other in ((at_zero.lower, moved.lower), (at_zero.effect, moved.effect), (at_zero.upper, moved.upper)):
        assert other == pytest.approx(one + 5, abs=1e-6)
    assert (turned.lower, turned.upper) == pytest.approx((-at_zero.upper, -at_zero.lower), abs=1e-6)
    assert turned.evidence == pytest.approx(at_zero.evidence)


def test_an_even_drift_is_removed() -> None:
    """The second run of each pair has 30 more, ten times the effect."""
    random = np.random.default_rng(2)
    orders = random.random(16) < 0.5
    drifting = random.normal(3.0, 0.3, 16) + np.where(orders, -30.0, 30.0)
    found = sequential(drifting, drifting, orders, CONFIDENCE)
    assert found.evidence > REQUIRED and 0 < found.lower < 3.0 < found.upper


def test_findings_are_judged_together_by_means() -> None:
    assert evidence_together([30.0] * 5) == [30.0] * 5, "what agrees costs nothing"
    assert evidence_together([100.0, 0.0, 0.0, 0.0, 0.0]) == [20.0, 0.0, 0.0, 0.0, 0.0]
    assert evidence_together([60.0, 50.0, 1.0]) == pytest.approx([30.5, 25.5, 1.0])
    assert evidence_together([]) == []


@pytest.mark.check
def test_a_look_after_each_pair_errs_no_more_often_than_stated() -> None:
    random, wrong, repetitions = np.random.default_rng(3), 0, 150
    for _ in range(repetitions):
        orders = random.random(20) < 0.5
        pairs = of_order(random.standard_t(2, 20), orders)
        wrong += any(
            sequential_evidence(pairs[:look], pairs[:look], orders[:look]) >= REQUIRED for look in range(6, 21)
        )
    assert wrong <= stats.binom.ppf(0.9999, repetitions, 1 - CONFIDENCE)


@pytest.mark.parametrize(("effect", "busy", "half"), [(1.0, 0.0, 3), (0.3, 0.0, 3), (0.3, 0.2, 4), (0.1, 0.0, 6)])
def test_an_effect_is_decided_in_few_rounds(effect: float, busy: float, half: int) -> None:
    """Of a figure of which runs differ by 5 %; ``half``: rounds after which half of the trials have decided."""
    found = courses(
        np.random.default_rng(4), 30, effect=effect, run_share=0.05, busy_share=busy, rounds=8 if effect < 0.3 else 5
    )
    assert 0 < found.half <= half
