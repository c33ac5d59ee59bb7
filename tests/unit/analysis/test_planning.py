# SPDX-License-Identifier: GPL-2.0-or-later
"""The next step of an undecided measurement: by the computation of a plan, and enough for a verdict in most cases."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis import power
from fastenough.analysis.cpu_evidence import CpuEvidence
from fastenough.analysis.planning import GOAL, UndecidedMeasurement, activations_to_decide, most_variation
from fastenough.analysis.power import ExpectedMisses
from fastenough.model import Requirement
from tests.support.confidence import WIDTH, counted, joined, made, verdicts
from tests.support.late_values import Machine, bursts, clusters, independent
from tests.support.long_measurements import FIRST, after_advice, counted_bursts, geometric_of, of_length

pytestmark = pytest.mark.slow
PERIOD_NS = 10**6
N = FIRST * WIDTH


def first_minutes(
    machine: Machine, rate: float, required: Requirement, repetitions: int = 20, seed: int = 3
) -> list[CpuEvidence]:
    return list(verdicts(made(machine, np.random.default_rng(seed), repetitions, FIRST, rate), required))


@pytest.mark.parametrize(
    ("misses", "required"),
    [
        (ExpectedMisses(0.5e-3), Requirement(1, 1e-3)),
        (ExpectedMisses(10e-3, 20, 20.0), Requirement(1, 20e-3, longest_burst=20)),
        (ExpectedMisses(2e-3), Requirement(1, 1e-3)),
    ],
)
def test_where_the_rate_is_known_the_chance_is_that_of_a_plan(misses: ExpectedMisses, required: Requirement) -> None:
    """A million causes leave the rate open by 0.1 %; the plan has so many more activations that the measured ones do
    not count.  The tolerance is three standard errors of both simulations."""
    undecided = UndecidedMeasurement(required, misses, 1e6, 1, PERIOD_NS, 1e9)
    for n in (10_000, 110_000, 150_000):
        drawn = power.simulated(np.random.default_rng(7), n, misses, PERIOD_NS)
        decided = (power.passes(seen, required) + power.fails(seen, required) for seen in drawn)
        planned = power.share_of(decided, GOAL, 400, 400)
        found = undecided.chance_of_verdict(n)
        if n == 10_000:
            assert planned < GOAL - 0.13 and found < GOAL
        else:
            assert planned > GOAL and found == pytest.approx(planned, abs=0.13)


@pytest.mark.parametrize(("length", "declared", "times"), [(1, None, 0.3), (20, None, 0.5), (1, 1, 0.3)])
def test_what_is_advised_decides_in_most_cases(length: int, declared: int | None, times: float) -> None:
    """By another simulation than the plan's."""
    allowed = (4 if declared else 15) * length / N
    required = Requirement(1, allowed, longest_burst=declared)
    advised = after_advice(of_length(length), np.random.default_rng(5), 60, times * allowed, required)
    assert advised.given >= 20
    assert advised.decided >= stats.binom.ppf(0.001, advised.given, 0.8)


def test_advice_after_few_short_bursts_decides_in_most_cases() -> None:
    """Bursts of 5 in the mean, geometric, at half the allowed rate; first minutes that happen to have few misses.

    With the mean and the variation of the measured lengths instead of those that they allow, 56 % are decided.
    """
    machine, allowed = geometric_of(5), 75 / N
    required, random = Requirement(1, allowed), np.random.default_rng(5)
    decided = []
    for _ in range(16):
        counts, later = machine.measured(random, FIRST, allowed / 2), np.random.default_rng(random.integers(2**31))
        (first,) = verdicts(counts, required)
        advised = activations_to_decide(first) if first.disturbances.possibly <= 30 else None
        for _ in range(6 if advised else 0):
            more = machine.measured(later, math.ceil((advised or N) / WIDTH) - FIRST, allowed / 2)
            decided += [cpu.within for cpu in verdicts(joined([counts, more], 1), required)]
    assert len(decided) >= 40 and np.mean(decided) >= 0.8


@pytest.mark.parametrize("number", [3, 6, 12])
def test_few_lengths_are_assumed_to_vary_more_than_they_show(number: int) -> None:
    """Geometric lengths: the measured variation is too small in most cases, the upper estimate in few."""
    lengths = np.random.default_rng(9).geometric(1 / 5, (500, number))
    true = math.sqrt(1 - 1 / 5)
    seen = lengths.std(axis=1) / lengths.mean(axis=1)
    upper = np.array([most_variation(float(variation), 5, number) for variation in seen])
    assert np.mean(seen < 0.9 * true) > 0.5 and np.mean(upper < 0.9 * true) < 0.35
    assert (upper >= seen).all() and (upper <= np.maximum(seen, true)).all()


def test_equal_lengths_are_assumed_to_stay_equal_but_one_length_shows_no_variation() -> None:
    assert most_variation(0.0, 20, 2) == most_variation(0.0, 1, 1) == 0.0
    assert most_variation(0.0, 20, 1) == pytest.approx(math.sqrt(1 - 1 / 20))
    assert most_variation(1.4, 5, 4) == 1.4


def test_misses_nearer_to_the_allowed_rate_take_longer() -> None:
    numbers = [
        activations_to_decide(replace(cpu, requirement=replace(cpu.requirement, miss_rate=share / N)))
        for cpu in first_minutes(independent, 8 / N, Requirement(1, 15 / N), 1)
        for share in (4 * cpu.disturbances.possibly, 2 * cpu.disturbances.possibly)
    ]
    assert numbers[0] and numbers[1] and numbers[0] < numbers[1]


def test_no_amount_is_advised_where_longer_measurements_are_refused() -> None:
    """Clusters of three, 3 s apart, at half the allowed rate: the longer, the more often their scale is too long."""
    required, machine = Requirement(1, 90 / (2 * N)), partial(clusters, length=3)
    found = [
        activations_to_decide(cpu)
        for cpu in verdicts(made(machine, np.random.default_rng(1), 8, 2 * FIRST, 45 / (2 * N)), required)
        if cpu.disturbances.scale and cpu.resolved
    ]
    assert found and not any(found)


def test_nothing_is_advised_where_no_amount_helps() -> None:
    """None allowed; a burst longer than declared; nothing seen and nothing declared."""
    (cpu,) = first_minutes(partial(bursts, length=20), 100 / N, Requirement(1, 200 / N), 1)
    for required in (Requirement(1), Requirement(1, 200 / N, longest_burst=2)):
        assert cpu.disturbances.possibly
        assert activations_to_decide(replace(cpu, requirement=required)) is None
    (cpu,) = first_minutes(independent, 0.0, Requirement(1, 1 / N), 1)
    assert activations_to_decide(cpu) is None


def test_where_nothing_was_seen_the_declared_burst_is_expected() -> None:
    """Four times as many misses in disturbances four times as long take about as long."""
    (cpu,) = first_minutes(independent, 0.0, Requirement(1, 1 / N), 1)
    alone, together = (
        activations_to_decide(replace(cpu, requirement=Requirement(1, 3 * burst / N, longest_burst=burst)))
        for burst in (1, 4)
    )
    assert alone and together and min(alone, together) > 1.25 * N
    assert 0.5 < alone / together < 2.0


@pytest.mark.parametrize("longest", [1, 40, 2500])
def test_long_measurements_are_counted_as_each_activation_is(longest: int) -> None:
    random = np.random.default_rng(8)
    for _ in range(50):
        begins = np.sort(random.integers(-2 * longest, N, int(random.integers(0, 40))))
        lengths = random.integers(1, longest + 1, begins.size)
        late = np.zeros((1, N), dtype=np.bool_)
        for begin, length in zip(begins, lengths, strict=True):
            late[0, max(0, begin) : max(0, begin + length)] = True
        found, expected = counted_bursts(begins, lengths, N), counted(late)
        for name in ("exceeded", "runs", "squares", "longest", "counts"):
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name
