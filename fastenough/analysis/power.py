# SPDX-License-Identifier: GPL-2.0-or-later
"""Duration after which a verdict is likely, before anything is measured (docs/plan-test.md).

Measurements of growing length are simulated and judged as recordings are (:mod:`cpu_evidence`), so that a duration
accounts for the confidence, the estimated size of clusters and the refusals of the tests of dependence.  Seeded: the
same question gets the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import blocks, bounds, clusters, sequential
from fastenough.analysis.cpu_evidence import UNSEEN_WITH_PERIOD, CpuEvidence, p_value_of
from fastenough.analysis.dependence import scale_of
from fastenough.analysis.disturbances import (
    GAP_PERIODS,
    Disturbances,
    OrderSource,
    RunLengths,
    dominance,
    size_of_clusters,
)
from fastenough.analysis.judgment import MINIMUM_DURATION_NS
from fastenough.analysis.merged import Merged
from fastenough.model import Requirement, Verdict
from fastenough.recording import Histogram

POWERS = (0.8, 0.95)
"""Probabilities of the verdict for which durations are given."""
_SEED = 20260101
_REPETITIONS, _LEAST_REPETITIONS = 300, 60
"""Simulated measurements of one length, and the least ones after which it may be given up."""
_CLEARLY = 3.0
"""Standard errors below a power at which a length is given up."""
_STEP, _LONG_STEP = 1.12, 1.3
"""Factors from one length to the next, near the powers and far below them."""
_FAR = 0.3
_MOST_ALLOWED, _MOST_EXPECTED = 3000, 100
"""Longest length: with so many allowed disturbances, and with so many expected ones."""
_MOST_NS = 2**62
"""Longest duration that can be requested."""
_MOST_PLACED = 5000
"""Disturbances whose places in time are drawn; more of them are surely enough for a rate, and only counted."""
_INTERVAL_NS = 10**9
_MOST_CELLS = 2048
"""Intervals are gathered to as many, in which the disturbances of a long measurement are counted."""
_HOUR_NS = 3600 * 10**9
_VALUES = Merged("planned", (), 1.0, _INTERVAL_NS, True, False, Histogram(10), 0, 0, 0, (), "", "")
"""Placeholder for the values in evidence, which are not used for a rate."""

Numbers = list[int | None]
"""Numbers of activations, in the order of :data:`POWERS`; None if no reasonable number has the power."""
_NO_NUMBERS: Numbers = [None for _ in POWERS]
Judge = Callable[[Disturbances, Requirement, Merged], float]
"""Probability of a verdict on these disturbances."""


@dataclass(frozen=True)
class ExpectedMisses:
    """``rate``: misses per activation; ``burst``: activations that one disturbance delays; ``longest``: the same of the
    longest one."""

    rate: float
    burst: int = 1
    longest: float = 1.0


@dataclass(frozen=True)
class PlannedDuration:
    """``n`` activations of each CPU, which take ``duration_ns``, give the verdict with the probability ``power``.

    Both are None if no reasonable number does.
    """

    power: float
    n: int | None
    duration_ns: float | None


@dataclass(frozen=True)
class PlannedVerdict:
    """The verdict to expect, PASS or FAIL, and after how long, in the order of :data:`POWERS`."""

    misses: ExpectedMisses
    misses_per_hour: float
    verdict: Verdict
    durations: tuple[PlannedDuration, ...]


@dataclass(frozen=True)
class PlanQuestion:
    """After how long do ``misses`` meet, or exceed, what is ``required``, with one activation every ``period_ns``?"""

    required: Requirement
    misses: ExpectedMisses
    period_ns: int

    def answer(self) -> PlannedVerdict:
        """PASS; FAIL where no duration gives a PASS and more misses are expected than allowed."""
        allowed, rate = self.required.miss_rate, self.misses.rate
        verdict = Verdict.PASS
        numbers = self._never_passes() if allowed == 0 else self._passes_after() if rate <= allowed else _NO_NUMBERS
        if rate > allowed and not any(numbers):
            verdict = Verdict.FAIL
            numbers = self._never_fails() if allowed == 0 else self._fails_after()
        durations = (
            PlannedDuration(power, n, None if n is None else float(n * self.period_ns))
            for power, n in zip(POWERS, numbers, strict=True)
        )
        return PlannedVerdict(self.misses, rate * _HOUR_NS / self.period_ns, verdict, tuple(durations))

    def _never_passes(self) -> Numbers:
        """The least length is the best one: a single miss refutes "never"."""
        confidence = self.required.confidence
        least_ns = max(MINIMUM_DURATION_NS, sequential.unseen_upper(confidence) * self.required.return_time_ns)
        n = max(math.ceil(least_ns / self.period_ns), bounds.samples_for_unseen_rate(UNSEEN_WITH_PERIOD, confidence))
        none_seen = math.exp(-n * self.misses.rate / self.misses.burst)
        return [n if none_seen >= power else None for power in POWERS]

    def _never_fails(self) -> Numbers:
        return [math.ceil(-math.log1p(-power) * self.misses.burst / self.misses.rate) for power in POWERS]

    def _passes_after(self) -> Numbers:
        declared, misses = self.required.longest_burst, self.misses
        if declared is not None:
            least = declared * sequential.events_upper(0, self.required.confidence) / self.required.miss_rate
        elif misses.rate:
            least = clusters.LEAST_DISTURBANCES / 2 * misses.burst / misses.rate
        else:
            return _NO_NUMBERS
        return self._least_numbers(max(least, MINIMUM_DURATION_NS / self.period_ns), _passes)

    def _fails_after(self) -> Numbers:
        return self._least_numbers(self.misses.burst / self.misses.rate, _fails)

    def _least_numbers(self, least: float, judge: Judge) -> Numbers:
        """Least numbers of activations, of those tried from ``least`` on, with which the verdict has each power."""
        numbers: Numbers = []
        most = max(least, min(self._most, _MOST_NS / self.period_ns))
        n = least
        while n <= most and n * self.period_ns <= _MOST_NS and len(numbers) < len(POWERS):
            share = self._share(math.ceil(n), judge, POWERS[len(numbers)])
            goals = (power + _error(power, _REPETITIONS) / 2 for power in POWERS[len(numbers) :])
            numbers += [math.ceil(n) for goal in goals if share >= goal]
            n *= _LONG_STEP if share < _FAR else _STEP
        return numbers + [None] * (len(POWERS) - len(numbers))

    @property
    def _most(self) -> float:
        """Activations beyond which the expected rate counts as too close to the allowed one."""
        largest = max(self.misses.longest, self.required.longest_burst or 0)
        expected = _MOST_EXPECTED * self.misses.burst / self.misses.rate if self.misses.rate else 0.0
        return max(_MOST_ALLOWED * largest / self.required.miss_rate, expected)

    def _share(self, n: int, judge: Judge, power: float) -> float:
        """Share of simulated measurements with the verdict; of the first ones where it is clearly below ``power``."""
        verdicts, number = 0.0, 0
        for number, disturbances in enumerate(simulated(np.random.default_rng(_SEED), n, self.misses, self.period_ns)):
            hopeless = number >= _LEAST_REPETITIONS and verdicts < (power - _CLEARLY * _error(power, number)) * number
            if number == _REPETITIONS or hopeless:
                break
            verdicts += judge(disturbances, self.required, _VALUES)
        return verdicts / number


def _error(share: float, repetitions: int) -> float:
    """Standard error of a share."""
    return math.sqrt(share * (1.0 - share) / repetitions)


def simulated(random: np.random.Generator, n: int, misses: ExpectedMisses, period_ns: int) -> Iterator[Disturbances]:
    """Disturbances of measurements of ``n`` activations, without end: independent ones, each of the same burst."""
    schedule = _Schedule(n, n * period_ns)
    while True:
        events = int(random.poisson(n * misses.rate / misses.burst))
        if events <= _MOST_PLACED:
            yield schedule.placed(np.sort(random.random(events)), misses)
        else:
            cells = schedule.cells
            yield schedule.counted(random.multinomial(events, np.full(cells, 1.0 / cells)), (1, events), misses)


@dataclass(frozen=True)
class _Schedule:
    """A measurement of ``n`` activations in ``time_ns``; its disturbances are counted in ``cells``."""

    n: int
    time_ns: int

    @property
    def _intervals(self) -> int:
        return max(1, round(min(self.time_ns / _INTERVAL_NS, 2.0**60)))

    @property
    def cells(self) -> int:
        return min(self._intervals, _MOST_CELLS)

    def placed(self, at: NDArray[np.float64], misses: ExpectedMisses) -> Disturbances:
        """Disturbances at these times (0 to 1, ascending): those in neighbouring intervals may be one."""
        apart = (np.diff((at * self._intervals).astype(np.int64)) - 1) * (self.n / self._intervals) >= GAP_PERIODS
        begins = np.flatnonzero(np.r_[at.size > 0, apart])
        largest = int(np.diff(np.r_[begins, at.size]).max(initial=0))
        counts = np.bincount((at * self.cells).astype(np.int64), minlength=self.cells if at.size else 0)
        return self.counted(counts, (begins.size, largest), misses)

    def counted(self, events: NDArray[np.int64], groups: tuple[int, int], misses: ExpectedMisses) -> Disturbances:
        """As at a limit that was given before the run.

        ``events``: of each cell.  ``groups``: number of groups that surely are apart, and events of the greatest one.
        """
        total = int(events.sum())
        counts, exceeded = misses.burst * events, misses.burst * total
        longest_run = max(misses.longest, float(misses.burst)) if total else 0.0
        runs = RunLengths(total, float(exceeded * misses.burst), longest_run)
        scale = scale_of(counts, total)
        size = size_of_clusters(exceeded, runs, scale, counts, counts)
        return Disturbances(
            n=self.n,
            time_ns=self.time_ns,
            surely=exceeded,
            possibly=exceeded,
            least=groups[0],
            most=total,
            longest=misses.burst * groups[1],
            scale=scale,
            size=size.mean,
            longest_run=longest_run,
            source=OrderSource.LIMIT,
            counts=counts,
            sure=counts,
            run_of=np.zeros(counts.size, dtype=np.int64),
            size_error=size.error,
            dominance=dominance(runs, counts) if total else 0.0,
        )


def _passes(disturbances: Disturbances, required: Requirement, values: Merged) -> float:
    """Probability of PASS, as of a recording; the test of stationarity refuses a steady system at its level."""
    evidence = CpuEvidence(values, disturbances, required, required.confidence)
    if not disturbances.enough:
        return float(evidence.within)
    return (evidence.rate_within and evidence.resolved) * (1.0 - blocks.LEVEL)


def _fails(disturbances: Disturbances, required: Requirement, values: Merged) -> float:
    """Probability of FAIL, as of :func:`_passes`."""
    evidence = CpuEvidence(values, disturbances, required, required.confidence)
    if not disturbances.enough or 2 * disturbances.surely > disturbances.n:
        return float(evidence.p_value <= 1.0 - required.confidence)
    return (evidence.resolved and p_value_of(disturbances, required.miss_rate) <= 1.0 - required.confidence) * (
        1.0 - blocks.LEVEL
    )
