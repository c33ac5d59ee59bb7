# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence from whole nights is valid after each, and finds a regression; ``make bench`` shows it at length."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fastenough.analysis.gate_nights import evidence_text
from fastenough.analysis.nights import (
    NIGHT_NS,
    Night,
    RunExceedances,
    evidence_of,
    evidence_required,
    log_capitals,
    log_evidence,
    nights_of,
)
from fastenough.model import Verdict
from tests.support.nights import CONFIDENCE, DAY_NS, Growth, Machine, alone, baseline_of, by_evidence

pytestmark = pytest.mark.check

ALLOWED = 0.01
GOOD, BAD = Night(ALLOWED / 2, True), Night(3 * ALLOWED, False)


@pytest.mark.parametrize("machine", [Machine(), Machine(burst=20)])
def test_a_doubled_quantile_is_found_and_none_is_never_found_in_200_nights(machine: Machine) -> None:
    found = {}
    for slower in (1.0, 2.0):
        random = np.random.default_rng(1)
        baseline = baseline_of(machine, random, 4, 1 - ALLOWED)
        found[slower] = np.array(
            [by_evidence(machine, Growth(slower), baseline, random, 200, quantile=1 - ALLOWED) for _ in range(3)]
        )
    assert np.isinf(found[1.0]).all()
    assert (found[2.0][:, 0] <= 3).all() and np.isinf(found[2.0][:, 1]).all()


def test_nights_that_are_judged_alone_give_false_alarms() -> None:
    """What the evidence of all nights avoids on the same machine."""
    machine, random = Machine(burst=20), np.random.default_rng(1)
    baseline = baseline_of(machine, random, 4, 1 - ALLOWED)
    assert alone(machine, Growth(), baseline, random, 200, quantile=1 - ALLOWED) < 200


def test_the_expectation_of_evidence_is_one_without_growth() -> None:
    """Over all courses of five nights in which a share of 0 or 4 times the allowed one comes as often as allowed."""
    mean = 0.0
    for course in itertools.product((0.0, 4.0), repeat=5):
        chance = math.prod(0.25 if ratio else 0.75 for ratio in course)
        mean += chance * math.exp(float(log_evidence(log_capitals(np.array(course)))[-1]))
    assert mean == pytest.approx(1.0)


def test_the_order_of_nights_does_not_matter() -> None:
    nights = [GOOD, BAD, BAD, GOOD, Night(0.0, True), BAD]
    first, last = (evidence_of(each, ALLOWED, CONFIDENCE) for each in (nights, nights[::-1]))
    assert (first.slower, first.within) == pytest.approx((last.slower, last.within))


@pytest.mark.parametrize(("night", "verdict"), [(GOOD, Verdict.PASS), (BAD, Verdict.FAIL)])
def test_the_expected_night_decides(night: Night, verdict: Verdict) -> None:
    found = evidence_of([night] * 2, ALLOWED, CONFIDENCE)
    assert found.verdict is Verdict.INCONCLUSIVE and found.expected is verdict and found.expected_night is not None
    for nights, expected in ((found.expected_night - 1, Verdict.INCONCLUSIVE), (found.expected_night, verdict)):
        decided = evidence_of([night] * nights, ALLOWED, CONFIDENCE)
        assert decided.verdict is expected and (decided.expected is None) == (expected is verdict)


def test_without_a_trend_the_earliest_pass_is_stated() -> None:
    undecided = [Night(ALLOWED, False)] * 3
    found = evidence_of(undecided, ALLOWED, CONFIDENCE)
    assert found.expected_night is None and found.earliest_pass is not None and found.slower == pytest.approx(1.0)
    assert f"no PASS before night {found.earliest_pass}" in evidence_text(found, "then")
    good = [GOOD] * (found.earliest_pass - 3)
    assert evidence_of([*undecided, *good], ALLOWED, CONFIDENCE).verdict is Verdict.PASS
    assert evidence_of([*undecided, *good[1:]], ALLOWED, CONFIDENCE).verdict is Verdict.INCONCLUSIVE


def test_growth_in_some_nights_outweighs_that_most_are_within() -> None:
    found = evidence_of([*[GOOD] * 40, *[Night(0.9, False)] * 4], ALLOWED, CONFIDENCE)
    assert found.within >= found.within_required and found.verdict is Verdict.FAIL


def test_several_tests_share_the_error_of_growth_only() -> None:
    one, three = (evidence_of([GOOD], ALLOWED, CONFIDENCE, tests) for tests in (1, 3))
    assert three.slower_required == pytest.approx(3 * one.slower_required) == pytest.approx(3 * 40)
    assert three.within_required == one.within_required == evidence_required(CONFIDENCE)


def _run(number: int, begin_ns: int, exceeded: int, size: float = 1.0) -> RunExceedances:
    return RunExceedances(str(number), begin_ns, 10_000, exceeded, exceeded, size)


def test_runs_of_one_night_are_one_bet() -> None:
    begins = (0, NIGHT_NS - 1, DAY_NS, 2 * DAY_NS)
    nights = nights_of([_run(number, begin, 30 * number) for number, begin in enumerate(begins)], ALLOWED)
    assert [night.above for night in nights] == pytest.approx([0.0015, 0.006, 0.009])
    set_back = nights_of([_run(0, 5 * DAY_NS, 30), _run(1, 0, 60), _run(2, 6 * DAY_NS, 90)], ALLOWED)
    assert [night.above for night in set_back] == pytest.approx([0.003, 0.006, 0.009]), "whatever the clock says"


def test_a_night_is_within_by_its_clusters() -> None:
    """50 of 100 allowed values are clearly fewer if they are independent, and not if they are two clusters."""
    independent, clustered = (nights_of([_run(0, 0, 50, size)], ALLOWED)[0] for size in (1.0, 25.0))
    assert (independent.within, clustered.within) == (True, False)
