# SPDX-License-Identifier: GPL-2.0-or-later
"""Length of a measurement after which a verdict is likely, for one that is undecided: the next step of a report.

Longer measurements are simulated and judged as those of a plan are (:mod:`power`), with disturbances like the measured
ones.  A plan assumes their rate and their mean length; here both are drawn from the values that the data allow.  The
rate of causes has a gamma distribution with shape y + 1/2 and rate n, for y causes in n activations (Jeffreys 1946).
The mean length of varied disturbances is the measured one, divided by a gamma-distributed number.  Few lengths vary
less than many, so their variation is an upper estimate.  The misses so far are part of each simulated measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

import numpy as np

from fastenough.analysis import special
from fastenough.analysis.cpu_evidence import CpuEvidence
from fastenough.analysis.disturbances import Disturbances
from fastenough.analysis.power import (
    MOST_NS,
    SEED,
    ExpectedMisses,
    Schedule,
    expected_misses,
    fails,
    passes,
    share_of,
    simulated_causes,
)
from fastenough.model import Requirement

GOAL = 0.9
"""Share of simulated measurements with a verdict at the advised number of activations.

It is a mean over the rates and lengths that the data allow.  The true share is lower if the true rate is closer to the
allowed one than the data suggest."""
_REPETITIONS, _LEAST_REPETITIONS = 120, 20
"""Simulated measurements of one length, and the least number of them after which a length may be given up."""
_STEPS, _STEP, _HALVINGS = 5, 4, 3
"""Steps to the longest advised length, the factor of each, and bisections of the last step, which leave 19 %."""
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Multiples of it, modulo 1, are spread evenly over (0, 1), however many there are."""
_UNSEEN = 0.5
"""Expected causes in as many activations as were measured, if none was seen (Jeffreys 1946)."""


@dataclass(frozen=True)
class UndecidedMeasurement:
    """``n`` activations in intervals of ``interval_ns`` whose ``misses`` do not decide what is ``required``.

    ``causes``: of the misses so far; 0 if there were none, and ``misses`` then has the rate of :data:`_UNSEEN` causes.
    """

    required: Requirement
    misses: ExpectedMisses
    causes: float
    n: int
    period_ns: int
    interval_ns: float

    def chance_of_verdict(self, n: int) -> float:
        """Probability of a verdict after ``n`` activations in total."""
        random = np.random.default_rng(SEED)
        misses, expected, rates = self.misses, max(self.causes, _UNSEEN), self._rates()
        causes_before = misses.causes_in(self.n, self.period_ns)
        causes_after = misses.causes_in(n, self.period_ns) - causes_before

        def causes() -> tuple[int, ExpectedMisses]:
            burst = self._burst(random)
            before = int(causes_before * misses.burst / burst + random.random()) if self.causes else 0
            number = before + int(random.poisson(causes_after * next(rates) / expected))
            return number, misses if burst == misses.burst else replace(misses, burst=burst)

        schedule = Schedule(n, self.period_ns, misses.cluster_gap_ns, self.interval_ns)
        verdicts = (_decides(seen, self.required) for seen in simulated_causes(random, schedule, causes))
        return share_of(verdicts, GOAL, _REPETITIONS, _LEAST_REPETITIONS)

    def _burst(self, random: np.random.Generator) -> int:
        """True mean length, drawn from the values that the measured lengths allow and rounded up or down at random.

        The mean of k gamma-distributed lengths with the variation v is the true mean times a gamma-distributed number
        with shape k / v^2 and mean 1.  With a declared longest burst the verdict depends on the declared length, and
        the measured mean is used.
        """
        misses = self.misses
        if not misses.variation or self.required.longest_burst is not None:
            return misses.burst
        shape = self.causes / misses.variation**2
        mean = misses.burst * shape / max(random.gamma(shape), shape * misses.burst / self.n)
        return max(1, int(mean + random.random()))

    def _rates(self) -> Iterator[float]:
        """Numbers of causes to expect in ``n`` activations, spread evenly over their distribution."""
        for number in count(1):
            yield float(special.gammaincinv(self.causes + _UNSEEN, number * _GOLDEN % 1.0))


def activations_to_decide(cpu: CpuEvidence) -> int | None:
    """Total number of activations that is likely to give a verdict; None if it is unknown or unreasonably large."""
    seen = cpu.disturbances
    if cpu.never or cpu.refuted or not seen.n:
        return None
    declared = cpu.requirement.longest_burst
    if seen.independent < 1 and (declared is None or seen.enough):
        return None
    required = replace(cpu.requirement, confidence=cpu.confidence)
    period_ns = cpu.values.period_ns or max(1, round(seen.time_ns / seen.n))
    interval_ns = seen.n * period_ns / seen.counts.size if seen.counts.size else Schedule.interval_ns
    if not seen.possibly:
        misses = ExpectedMisses(_UNSEEN * (declared or 1) / seen.n, declared or 1, float(declared or 1))
        return _least_number(UndecidedMeasurement(required, misses, 0.0, seen.n, period_ns, interval_ns))
    misses = expected_misses(seen, exceeded=seen.possibly, number=seen.most, causes=seen.clusters.most)
    if declared is None:
        misses = replace(misses, variation=most_variation(misses.variation, misses.burst, seen.most))
    causes = seen.possibly / misses.per_cause
    return _least_number(UndecidedMeasurement(required, misses, causes, seen.n, period_ns, interval_ns))


def most_variation(seen: float, burst: int, number: int) -> float:
    """Upper estimate of the coefficient of variation of lengths, where that of ``number`` of them was ``seen``.

    The square of the variation of k exponential lengths is too small by the factor (k - 1) / (k + 1) in the mean, and
    has a standard error of about sqrt(8 / k) of itself.  The factor is corrected and one standard error is added, up to
    the variation of geometric lengths.  A single length shows no variation, so it is assumed to be geometric.
    """
    geometric = 1.0 - 1.0 / burst
    if number < 2:
        return max(seen, math.sqrt(geometric))
    corrected = seen**2 * (number + 1.0) / (number - 1.0) * (1.0 + math.sqrt(8.0 / number))
    return max(seen, math.sqrt(min(geometric, corrected)))


@lru_cache(maxsize=256)
def _least_number(undecided: UndecidedMeasurement) -> int | None:
    """The least number, of those tried, with which the chance of a verdict reaches :data:`GOAL`."""
    most = min(undecided.misses.most_resolved(undecided.period_ns), MOST_NS / undecided.period_ns)
    low = high = undecided.n
    for _ in range(_STEPS):
        low, high = high, _STEP * high
        if high > most:
            return None
        if undecided.chance_of_verdict(high) >= GOAL:
            break
    else:
        return None
    for _ in range(_HALVINGS):
        middle = math.ceil(math.sqrt(low * high))
        low, high = (low, middle) if undecided.chance_of_verdict(middle) >= GOAL else (middle, high)
    return high


def _decides(disturbances: Disturbances, required: Requirement) -> float:
    """Probability of PASS or FAIL."""
    return passes(disturbances, required) + fails(disturbances, required)
