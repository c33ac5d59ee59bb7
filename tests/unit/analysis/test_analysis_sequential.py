# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence about a rate holds at every look, and costs little more than a single one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from fastenough.analysis import sequential

pytestmark = pytest.mark.check

CONFIDENCE = 0.95
REQUIRED = sequential.log_required(CONFIDENCE)
STEP = 0.25
"""Allowed events between two looks."""


def _most_that_pass(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """The greatest number of events that passes at each time, -1 if none does."""
    found, events = [], -1
    for mean in expected:
        while sequential.log_evidence_below(events + 1, mean) >= REQUIRED:
            events += 1
        found.append(events)
    return np.array(found)


def _least_that_fail(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    found, events = [], 0
    for mean in expected:
        while sequential.log_evidence_above(events, mean) < REQUIRED:
            events += 1
        found.append(events)
    return np.array(found)


def _looked_at(rate: float, longest: float, repetitions: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Allowed events until the first PASS, and the first FAIL, of machines that are looked at all the time."""
    expected = np.arange(STEP, longest, STEP)
    events = np.random.default_rng(1).poisson(rate * STEP, (repetitions, expected.size)).cumsum(axis=1)
    passed, failed = (
        np.where(reached.any(axis=1), expected[reached.argmax(axis=1)], math.inf)
        for reached in (events <= _most_that_pass(expected), events >= _least_that_fail(expected))
    )
    return passed, failed


@pytest.mark.parametrize("rate", [1.0, 1.05])
def test_continuous_looks_at_a_machine_at_its_limit_err_no_more_often_than_stated(rate: float) -> None:
    repetitions = 3000
    passed, failed = (np.isfinite(first).mean() for first in _looked_at(rate, 400.0, repetitions))
    most = stats.binom.ppf(0.9999, repetitions, 1 - CONFIDENCE) / repetitions
    assert passed <= most
    assert rate > 1 or 0.01 < failed <= most


@pytest.mark.parametrize(("rate", "most"), [(0.0, 3.8), (0.25, 15.0), (0.5, 38.0), (0.8, 345.0)])
def test_what_is_within_passes_soon(rate: float, most: float) -> None:
    """With a chance of 80 %; after so many allowed events."""
    passed, _ = _looked_at(rate, 1.3 * most, 1000)
    assert np.quantile(passed, 0.8) <= most


@pytest.mark.parametrize(("rate", "most"), [(1.5, 65.0), (2.0, 20.0), (10.0, 1.5)])
def test_what_is_beyond_fails_soon(rate: float, most: float) -> None:
    _, failed = _looked_at(rate, 1.3 * most, 1000)
    assert np.quantile(failed, 0.8) <= most


@pytest.mark.parametrize(("events", "expected"), [(0, 2.5), (3, 14.0), (30, 25.0), (7.3, 3.1)])
def test_evidence_is_the_average_likelihood_ratio(events: float, expected: float) -> None:
    """By numerical integration over the rates that the method names."""

    def ratio(rate: float) -> float:
        return float(rate**events * math.exp(expected * (1 - rate)))

    below, above = stats.gamma(3, scale=1 / 5), stats.gamma(2)
    some = integrate.quad(lambda rate: below.pdf(rate) * ratio(rate), 0, 1)[0] / below.cdf(1)
    none = math.exp(expected) if events == 0 else 0.0
    assert sequential.log_evidence_below(events, expected) == pytest.approx(math.log((2 * some + none) / 3), abs=1e-6)
    more = integrate.quad(lambda rate: above.pdf(rate) * ratio(rate), 1, 40)[0] / above.sf(1)
    assert sequential.log_evidence_above(events, expected) == pytest.approx(math.log(more), abs=1e-6)


@pytest.mark.parametrize("events", [0, 1, 4.5, 40, 4000])
def test_the_bound_is_the_greatest_rate_that_is_not_rejected(events: float) -> None:
    upper = sequential.events_upper(events, CONFIDENCE)
    assert sequential.log_evidence_below(events, upper) >= REQUIRED
    assert sequential.log_evidence_below(events, upper * 0.9999) < REQUIRED
    evidence = [sequential.log_evidence_below(events, upper * times) for times in (1.0, 1.1, 2.0, 10.0)]
    assert evidence == sorted(evidence), "each greater rate is rejected as well"
    assert sequential.log_evidence_below(events + 1, upper) < REQUIRED


def test_no_evidence_is_taken_from_rates_on_the_other_side() -> None:
    """Uncut, the mixture grows as well where there are far too many."""
    assert sequential.log_evidence_below(500, 100.0) < -5
    assert sequential.log_evidence_above(20, 100.0) < -2 and sequential.log_evidence_above(0, 3.0) < 0
    assert sequential.log_evidence_below(10**6, 1.0) == -math.inf
    assert sequential.p_value(-math.inf) == 1.0 and sequential.p_value(REQUIRED) == pytest.approx(0.05)
    assert sequential.unseen_upper(CONFIDENCE) == pytest.approx(-math.log(0.05))
