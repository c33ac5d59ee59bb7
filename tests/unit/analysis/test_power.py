# SPDX-License-Identifier: GPL-2.0-or-later
"""Planned durations: against measurements that are simulated activation by activation, and in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis import power, sequential
from fastenough.analysis.blocks import LEVEL
from fastenough.analysis.cpu_evidence import CpuEvidence
from fastenough.analysis.disturbances import Disturbances, OrderSource
from fastenough.analysis.power import POWERS, ExpectedMisses, PlannedVerdict, PlanQuestion
from fastenough.model import Requirement, Verdict
from tests.support.confidence import WIDTH, counted, disturbances_of, made
from tests.support.late_values import Machine, bursts, geometric
from tests.support.long_measurements import geometric_of, of_length, shares

pytestmark = pytest.mark.slow
PERIOD_NS = 10**6


def answer(
    rate: float, *, burst: int = 1, allowed: float = 1e-3, confidence: float = 0.95, longest_burst: int | None = None
) -> PlannedVerdict:
    required = Requirement(1, allowed, confidence, longest_burst)
    return PlanQuestion(required, ExpectedMisses(rate, burst, float(burst)), PERIOD_NS).answer()


def numbers(planned: PlannedVerdict) -> list[int | None]:
    return [one.n for one in planned.durations]


@pytest.mark.parametrize(("burst", "confidence"), [(1, 0.95), (20, 0.95), (10**6, 0.99)])
def test_without_misses_the_declared_burst_decides(burst: int, confidence: float) -> None:
    planned = answer(0.0, confidence=confidence, longest_burst=burst)
    n = max(10_000, math.ceil(burst * sequential.events_upper(0, confidence) / 1e-3))
    assert (planned.verdict, numbers(planned)) == (Verdict.PASS, [n, n])
    assert [one.duration_ns for one in planned.durations] == [n * PERIOD_NS] * 2


def test_without_misses_and_burst_no_duration_is_planned() -> None:
    assert numbers(answer(0.0)) == [None, None]


@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_never_takes_as_many_return_times_as_its_evidence(confidence: float) -> None:
    required = Requirement(1, 0.0, confidence, return_time_ns=60 * 10**9)
    n = math.ceil(60_000 * sequential.unseen_upper(confidence))
    found = {rate: PlanQuestion(required, ExpectedMisses(rate), PERIOD_NS).answer() for rate in (0.0, 0.1 / n, 1e-3)}
    assert [(one.verdict, numbers(one)) for one in found.values()] == [
        (Verdict.PASS, [n, n]),
        (Verdict.PASS, [n, None]),
        (Verdict.FAIL, [1610, 2996]),
    ], "0.1 misses are none in 90 % of cases; one miss fails"
    assert numbers(PlanQuestion(Requirement(1), ExpectedMisses(0.0), 10**9).answer()) == [299, 299], "few activations"


@pytest.mark.parametrize(
    ("times", "burst", "longest_burst"), [(0.5, 1, None), (0.5, 1, 1), (0.3, 20, 20), (2.0, 1, None), (3.0, 20, 20)]
)
def test_a_planned_measurement_has_its_verdict_as_often_as_stated(
    times: float, burst: int, longest_burst: int | None
) -> None:
    """Its activations are drawn one by one, and judged as a recording's; a shorter measurement decides less often."""
    allowed, repetitions = 1e-3 * burst, 100
    planned = answer(times * allowed, burst=burst, allowed=allowed, longest_burst=longest_burst)
    assert planned.verdict is (Verdict.PASS if times < 1 else Verdict.FAIL)
    machine = of_length(burst)
    required, which = Requirement(1, allowed, longest_burst=longest_burst), int(times > 1)

    def share(n: int) -> float:
        return shares(machine, np.random.default_rng(3), repetitions, n, times * allowed, required=required)[which]

    for one in planned.durations:
        assert one.n and share(one.n) >= float(stats.binom.ppf(0.001, repetitions, one.power)) / repetitions
    assert share((planned.durations[0].n or 0) // 2) < POWERS[0] - 0.15


@pytest.mark.parametrize("longest", [1, 40, 2500])
def test_simulated_disturbances_are_counted_as_in_a_recording(longest: int) -> None:
    random, n = np.random.default_rng(8), 60 * WIDTH
    for _ in range(50):
        late = np.zeros((1, n), dtype=np.bool_)
        for begin in random.choice(n, size=int(random.integers(1, 25)), replace=False):
            late[0, begin : begin + int(random.integers(1, longest + 1))] = True
        edges = np.flatnonzero(np.diff(np.r_[False, late[0], False])).astype(np.float64)
        expected = disturbances_of(counted(late), 0, OrderSource.LIMIT)
        found = power.Schedule(n, PERIOD_NS).placed(edges[::2], edges[1::2])
        for name in ("n", "time_ns", "surely", "possibly", "least", "most", "longest", "size", "longest_run"):
            assert getattr(found, name) == getattr(expected, name), name
        assert found.counts.tolist() == expected.counts.tolist()
        assert (found.size_error, found.dominance) == (expected.size_error, expected.dominance)


@pytest.mark.parametrize(
    ("machine", "misses"),
    [
        (partial(bursts, length=20), ExpectedMisses(5e-3, 20, 20.0)),
        (partial(geometric, mean=5), ExpectedMisses(2e-3, 5, 20.0, 0.894)),
    ],
)
def test_simulated_disturbances_are_as_long_and_as_close_as_those_of_the_machine(
    machine: Machine, misses: ExpectedMisses
) -> None:
    """Bursts that overlap are one: a fifth of the measurements has one longer than any burst."""
    repetitions, n = 400, 100 * WIDTH
    counts = made(machine, np.random.default_rng(4), repetitions, 100, misses.rate)
    real = [disturbances_of(counts, which, OrderSource.LIMIT) for which in range(repetitions)]
    drawn = list(islice(power.simulated(np.random.default_rng(5), n, misses, PERIOD_NS), repetitions))
    figures: tuple[tuple[Callable[[Disturbances], float], float], ...] = (
        (lambda one: one.possibly, 0.1),
        (lambda one: one.most, 0.1),
        (lambda one: one.size, 0.15),
        (lambda one: one.longest_run, 0.1),
    )
    for figure, most_apart in figures:
        expected, found = (float(np.mean([figure(one) for one in some])) for some in (real, drawn))
        assert found == pytest.approx(expected, rel=most_apart)
    longer = [np.mean([one.longest_run > 20 for one in some]) for some in (real, drawn)]
    dependent = [np.mean([one.scale > 0 for one in some]) for some in (real, drawn)]
    assert longer[1] == pytest.approx(longer[0], abs=0.11)
    assert dependent[1] == pytest.approx(dependent[0], abs=0.11)


def test_a_plan_for_lengths_that_vary_has_its_verdict_as_often_as_stated() -> None:
    """With all bursts as long as the mean burst of a miss, a length is planned at which a third passes."""
    misses, required = ExpectedMisses(0.3 * 2.5e-3, 5, 20.0, 0.894), Requirement(1, 2.5e-3)
    n = PlanQuestion(required, misses, PERIOD_NS).answer().durations[0].n or 0
    passed, _ = shares(geometric_of(5), np.random.default_rng(6), 150, n, misses.rate, required=required)
    assert passed >= float(stats.binom.ppf(0.001, 150, POWERS[0])) / 150
    alike = replace(misses, burst=9, variation=0.0)
    shorter = PlanQuestion(required, alike, PERIOD_NS).answer().durations[0].n or 0
    assert shorter < n


@pytest.mark.parametrize(("rate", "longest_burst"), [(5e-4, None), (1e-4, 3), (3e-3, None)])
def test_disturbances_are_judged_as_those_of_a_recording(rate: float, longest_burst: int | None) -> None:
    required = Requirement(1, 1e-3, longest_burst=longest_burst)
    drawn = power.simulated(np.random.default_rng(2), 90_000, ExpectedMisses(rate), PERIOD_NS)
    some = list(islice(drawn, 250))
    assert not all(seen.clusters.supported for seen in some) or rate < 5e-4
    for seen in some:
        weighed = CpuEvidence(power._VALUES, seen, required, required.confidence)
        if not weighed.steady:
            continue
        for share, given in (
            (power.passes(seen, required), weighed.within),
            (power.fails(seen, required), weighed.p_value <= 0.05),
        ):
            assert share == pytest.approx(given * (1 - LEVEL if seen.enough else 1))


def test_more_confidence_and_rates_nearer_to_the_allowed_one_take_longer() -> None:
    found = [numbers(one) for one in (answer(3e-4), answer(5e-4), answer(5e-4, confidence=0.99))]
    assert all(
        shorter < longer
        for each in zip(*found, strict=True)
        for shorter, longer in pairwise(map(int, filter(None, each)))
    )
    assert numbers(answer(1e-3)) == [None, None] and answer(1e-3).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("allowed", "longest_burst"), [(1e-18, 1), (1e-12, None), (1e-12, 10**9), (0.999999, None), (0.5, 10**9)]
)
@pytest.mark.parametrize("times", [0.0, 0.5, 1.0])
def test_absurd_questions_get_an_answer(allowed: float, longest_burst: int | None, times: float) -> None:
    planned = answer(times * allowed, allowed=allowed, longest_burst=longest_burst)
    assert all(one.duration_ns is None or 10**10 <= one.duration_ns < 2**62 for one in planned.durations)
