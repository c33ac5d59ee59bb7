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
from fastenough.analysis.assessment import StatedMaximum
from fastenough.analysis.cpu_evidence import MINIMUM_DURATION_NS, UNSEEN_WITH_PERIOD, CpuEvidence, p_value_of
from fastenough.analysis.dependence import scale_of
from fastenough.analysis.disturbances import (
    GAP_PERIODS,
    Disturbances,
    OrderSource,
    RunLengths,
    dominance,
    size_of_clusters,
)
from fastenough.analysis.merged import Merged
from fastenough.model import Requirement, Verdict
from fastenough.recording import Histogram

POWERS = (0.8, 0.95)
"""Probabilities of the verdict for which durations are given."""
NO_PASS_WITHOUT_MISSES = (
    "without misses no duration gives a PASS for a miss rate, because a rate needs ten disturbances: pass "
    "--longest-burst if it is known, or require --miss-rate 0"
)
SEED = 20260101
"""Seed of all simulations: the same question gets the same answer."""
_REPETITIONS, _LEAST_REPETITIONS = 1000, 60
"""Simulated measurements of one length, and the least ones after which it may be given up."""
_CLEARLY = 3.0
"""Standard errors below a power at which a length is given up."""
_RESERVED = 0.15
"""Share of the chance of no verdict that a length must leave unused: the checks at higher limits, which depend on the
tail and are not simulated, refuse some measurements, and the first one of many lengths that has a power may have it by
chance."""
_STEP, _LONG_STEP = 1.12, 1.3
"""Factors from one length to the next, near the powers and far below them."""
_FAR = 0.3
_MOST_ALLOWED, _MOST_EXPECTED = 3000, 100
"""Longest length: with so many allowed disturbances, and with so many expected ones."""
MOST_NS = 2**62
"""Longest duration that can be requested."""
_MOST_UNITED = 0.5
"""Rate from which on disturbances are not counted as overlapping."""
_MOST_PLACED = 5000
"""Disturbances whose places in time are drawn; more of them are surely enough for a rate, and only counted."""
_INTERVAL_NS = 10**9
_MOST_CELLS = 2048
"""Intervals are gathered to as many, in which the disturbances of a long measurement are counted."""
_CELLS_APART, _MOST_RESOLVED = 4, 2**16
"""Cells within the time between disturbances of one cause, and the most of them in a planned measurement."""
_HOUR_NS = 3600 * 10**9
_VALUES = Merged("planned", (), 1.0, _INTERVAL_NS, True, False, Histogram(10), 0, 0, 0, (), "", "")
"""Placeholder for the values in evidence, which are not used for a rate."""

FloatArray = NDArray[np.float64]
Numbers = list[int | None]
"""Numbers of activations, in the order of :data:`POWERS`; None if no reasonable number has the power."""
_NO_NUMBERS: Numbers = [None for _ in POWERS]
Judge = Callable[[Disturbances, Requirement], float]
"""Probability of a verdict on these disturbances."""


@dataclass(frozen=True)
class ExpectedMisses:
    """``rate``: misses per activation; ``burst``: activations that a disturbance delays in the mean; ``longest``: the
    same of the longest one; ``variation``: coefficient of variation of these lengths.  ``cluster_size``: disturbances
    of one cause, each within ``cluster_gap_ns`` of the one before."""

    rate: float
    burst: int = 1
    longest: float = 1.0
    variation: float = 0.0
    cluster_size: int = 1
    cluster_gap_ns: float = 0.0

    @property
    def per_cause(self) -> int:
        """Misses of one cause, in the mean."""
        return self.burst * self.cluster_size

    @property
    def greatest(self) -> float:
        """Misses of the longest disturbance."""
        return max(self.longest, float(self.burst))

    def lead(self, period_ns: float) -> float:
        """Activations before a measurement in which a cause may begin whose last misses are within it."""
        return self.burst * (1.0 + 3.0 * self.variation) + (self.cluster_size - 1) * self.cluster_gap_ns / period_ns

    def causes_in(self, n: float, period_ns: float) -> float:
        """Mean number of causes in ``n`` activations and the lead, so that the union of their misses has the rate."""
        rate = -math.log1p(-self.rate) if self.rate < _MOST_UNITED else self.rate
        return (n + self.lead(period_ns)) * rate / self.per_cause

    def most_resolved(self, period_ns: float) -> float:
        """Maximum number of activations in which several disturbances of one cause can be told apart; infinite if each
        cause has one disturbance."""
        if self.cluster_size == 1:
            return math.inf
        resolved = _MOST_RESOLVED * self.cluster_gap_ns / _CELLS_APART / period_ns
        return min(resolved, 0.9 * _MOST_PLACED * self.burst / self.rate)


def expected_misses(cpu: Disturbances | StatedMaximum, *, exceeded: int, number: int, causes: int) -> ExpectedMisses:
    """Misses in disturbances like those of a CPU: mean length, its variation, and number per cause.

    ``exceeded`` misses in ``number`` disturbances of so many ``causes``: clusters, if these are dependent.  If there
    are too few disturbances to estimate length and variation, each has the greatest possible length.
    """
    rate = exceeded / cpu.n
    if not cpu.scale_ns and cpu.independent < 1:
        return ExpectedMisses(rate, max(1, cpu.longest), max(cpu.longest_run, float(cpu.longest)))
    burst, cluster_size, variation = _per(exceeded, number), 1, 0.0
    if cpu.scale_ns:
        cluster_size = max(1, round(number / max(1, causes)))
    elif burst > 1:
        variation = math.sqrt(max(0.0, number / cpu.independent - 1.0))
    else:  # the recording may not show which misses follow each other
        burst = _per(exceeded, min(number, cpu.independent))
    return ExpectedMisses(rate, burst, max(cpu.longest_run, float(burst)), variation, cluster_size, cpu.scale_ns)


def _per(exceeded: int, events: float) -> int:
    """Misses of an event in the mean, rounded up."""
    return max(1, math.ceil(exceeded / events - 1e-9))


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
        none_seen = math.exp(-n * self.misses.rate / self.misses.per_cause)
        return [n if none_seen >= power else None for power in POWERS]

    def _never_fails(self) -> Numbers:
        return [math.ceil(-math.log1p(-power) * self.misses.per_cause / self.misses.rate) for power in POWERS]

    def _passes_after(self) -> Numbers:
        declared, misses = self.required.longest_burst, self.misses
        if declared is not None:
            least = declared * sequential.events_upper(0, self.required.confidence) / self.required.miss_rate
        elif misses.rate:
            least = clusters.LEAST_DISTURBANCES / 2 * misses.per_cause / misses.rate
        else:
            return _NO_NUMBERS
        return self._least_numbers(max(least, MINIMUM_DURATION_NS / self.period_ns), passes)

    def _fails_after(self) -> Numbers:
        return self._least_numbers(self.misses.per_cause / self.misses.rate, fails)

    def _least_numbers(self, least: float, judge: Judge) -> Numbers:
        """Least numbers of activations, of those tried from ``least`` on, with which the verdict has each power."""
        numbers: Numbers = []
        most = max(least, min(self._most, MOST_NS / self.period_ns))
        n = least
        while n <= most and n * self.period_ns <= MOST_NS and len(numbers) < len(POWERS):
            share = self._share(math.ceil(n), judge, POWERS[len(numbers)])
            goals = (power + _RESERVED * (1.0 - power) for power in POWERS[len(numbers) :])
            numbers += [math.ceil(n) for goal in goals if share >= goal]
            n *= _LONG_STEP if share < _FAR else _STEP
        return numbers + [None] * (len(POWERS) - len(numbers))

    @property
    def _most(self) -> float:
        """Activations beyond which the expected rate counts as too close to the allowed one."""
        misses = self.misses
        if misses.cluster_size > 1:
            return misses.most_resolved(self.period_ns)
        largest = max(misses.longest, self.required.longest_burst or 0)
        expected = _MOST_EXPECTED * misses.per_cause / misses.rate if misses.rate else 0.0
        return max(_MOST_ALLOWED * largest / self.required.miss_rate, expected)

    def _share(self, n: int, judge: Judge, power: float) -> float:
        """Share of simulated measurements with the verdict."""
        random = np.random.default_rng(SEED)
        verdicts = (judge(seen, self.required) for seen in simulated(random, n, self.misses, self.period_ns))
        return share_of(verdicts, power, _REPETITIONS, _LEAST_REPETITIONS)


def share_of(verdicts: Iterator[float], power: float, repetitions: int, least: int) -> float:
    """Mean of ``repetitions`` verdicts, or of the first ``least`` or more where it is clearly below ``power``."""
    total, number = 0.0, 0
    for number, verdict in enumerate(verdicts):
        hopeless = number >= least and total < (power - _CLEARLY * _error(power, number)) * number
        if number == repetitions or hopeless:
            break
        total += verdict
    return total / number


def _error(share: float, repetitions: int) -> float:
    """Standard error of a share."""
    return math.sqrt(share * (1.0 - share) / repetitions)


def simulated(random: np.random.Generator, n: int, misses: ExpectedMisses, period_ns: int) -> Iterator[Disturbances]:
    """Disturbances of an endless series of measurements of ``n`` activations, with independent causes."""
    causes = misses.causes_in(n, period_ns)
    schedule = Schedule(n, period_ns, misses.cluster_gap_ns)
    return simulated_causes(random, schedule, lambda: (int(random.poisson(causes)), misses))


def simulated_causes(
    random: np.random.Generator, schedule: Schedule, causes: Callable[[], tuple[int, ExpectedMisses]]
) -> Iterator[Disturbances]:
    """Disturbances of an endless series of measurements.

    ``causes``: draws the number of causes in one measurement, and their misses.
    """
    while True:
        number, misses = causes()
        if number * misses.cluster_size <= _MOST_PLACED:
            yield schedule.placed(*_runs(random, number, schedule.n, misses, schedule.period_ns))
        else:
            cells = schedule.cells
            yield schedule.counted(random.multinomial(number, np.full(cells, 1.0 / cells)), misses)


def _runs(
    random: np.random.Generator, causes: int, n: int, misses: ExpectedMisses, period_ns: int
) -> tuple[FloatArray, FloatArray]:
    """First activations of the runs of misses of so many causes, and the ones after their last; in the order of time.

    Disturbances that overlap or adjoin are one run.  One that began before the measurement may reach into it.
    """
    lead = misses.lead(period_ns)
    at = np.floor(random.uniform(-lead, n, causes))
    if misses.cluster_size > 1:
        later = random.uniform(0.0, misses.cluster_gap_ns / period_ns, (causes, misses.cluster_size - 1)).cumsum(axis=1)
        at = np.floor(at[:, None] + np.c_[np.zeros(causes), later]).ravel()
    ends = at + _lengths(random, at.size, misses)
    order = np.argsort(at)
    at, ends = np.maximum(at[order], 0.0), np.maximum.accumulate(np.minimum(ends[order], n))
    within = (ends > 0) & (at < n)
    at, ends = at[within], ends[within]
    first = np.flatnonzero(_first_and(at[1:] > ends[:-1])[: at.size])
    return at[first], ends[np.append(first[1:], at.size)[: first.size] - 1]


def _first_and(begins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``begins`` with a mark for the first item, which always begins something, put in front."""
    return np.concatenate(([True], begins))


def _alternating(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.stack((first, second), axis=1).ravel()


def _lengths(random: np.random.Generator, number: int, misses: ExpectedMisses) -> FloatArray:
    """Activations that each disturbance delays: 1 and a gamma-distributed number, rounded up or down at random."""
    spread = misses.burst * misses.variation
    if misses.burst == 1 or not spread:
        return np.full(number, float(misses.burst))
    more = misses.burst - 1.0
    lengths = 1.0 + random.gamma((more / spread) ** 2, spread**2 / more, number)
    return np.floor(lengths + random.random(number))


@dataclass(frozen=True)
class Schedule:
    """A measurement of ``n`` activations in intervals of ``interval_ns``; its misses are counted in ``cells``.

    These are fine enough for disturbances of one cause that are ``cluster_gap_ns`` apart.
    """

    n: int
    period_ns: int
    cluster_gap_ns: float = 0.0
    interval_ns: float = _INTERVAL_NS

    @property
    def time_ns(self) -> int:
        return self.n * self.period_ns

    @property
    def _intervals(self) -> int:
        return max(1, round(min(self.time_ns / self.interval_ns, 2.0**60)))

    @property
    def cells(self) -> int:
        resolved = _CELLS_APART * self.time_ns / self.cluster_gap_ns if self.cluster_gap_ns else 0.0
        return min(self._intervals, max(_MOST_CELLS, math.ceil(resolved)))

    def placed(self, begins: FloatArray, ends: FloatArray) -> Disturbances:
        """Of runs of misses at these activations: those in neighbouring intervals may be one disturbance."""
        if not begins.size:
            return self._of(np.empty(0, dtype=np.int64), RunLengths(0, 0.0, 0.0), (0, 0))
        lengths, width = ends - begins, self.n / self._intervals
        between = np.floor(begins[1:] / width) - np.floor((ends[:-1] - 1.0) / width) - 1.0
        groups = np.add.reduceat(lengths, np.flatnonzero(_first_and(between * width >= GAP_PERIODS)))
        edges = np.floor(np.linspace(0.0, self.n, self.cells + 1))
        up_to = np.cumsum(lengths)
        misses = np.interp(edges, _alternating(begins, ends), _alternating(up_to - lengths, up_to))
        counts = np.diff(np.rint(misses)).astype(np.int64)
        runs = RunLengths(begins.size, float(lengths @ lengths), float(lengths.max()))
        return self._of(counts, runs, (groups.size, int(groups.max())))

    def counted(self, causes: NDArray[np.int64], misses: ExpectedMisses) -> Disturbances:
        """Of so many causes in each cell, which are surely enough for a rate."""
        counts = causes * misses.cluster_size * misses.burst
        number, exceeded = int(causes.sum()) * misses.cluster_size, int(counts.sum())
        runs = RunLengths(number, exceeded * misses.burst * (1.0 + misses.variation**2), misses.greatest)
        return self._of(counts, runs, (1, exceeded))

    def _of(self, counts: NDArray[np.int64], runs: RunLengths, groups: tuple[int, int]) -> Disturbances:
        """As at a limit that was given before the run.

        ``counts``: misses of each cell.  ``groups``: number of groups that surely are apart, and misses of the greatest
        one.
        """
        exceeded = int(counts.sum())
        scale = scale_of(counts, runs.most)
        size = size_of_clusters(exceeded, runs, scale, counts)
        return Disturbances(
            n=self.n,
            time_ns=self.time_ns,
            surely=exceeded,
            possibly=exceeded,
            least=groups[0],
            most=runs.most,
            longest=groups[1],
            scale=scale,
            size=size.mean,
            longest_run=runs.longest,
            source=OrderSource.LIMIT,
            counts=counts,
            sure=counts,
            run_of=np.zeros(counts.size, dtype=np.int64),
            size_error=size.error,
            dominance=dominance(runs, counts) if exceeded else 0.0,
        )


def passes(disturbances: Disturbances, required: Requirement) -> float:
    """Probability of PASS, as of a recording; the test of stationarity refuses a steady system at its level."""
    evidence = CpuEvidence(_VALUES, disturbances, required, required.confidence)
    if not disturbances.enough:
        return float(evidence.within_at_limit)
    return (evidence.rate_within and evidence.resolved) * (1.0 - blocks.LEVEL)


def fails(disturbances: Disturbances, required: Requirement) -> float:
    """Probability of FAIL; see :func:`passes`."""
    evidence = CpuEvidence(_VALUES, disturbances, required, required.confidence)
    if not disturbances.enough or 2 * disturbances.surely > disturbances.n:
        return float(evidence.p_value <= 1.0 - required.confidence)
    return (evidence.resolved and p_value_of(disturbances, required.miss_rate) <= 1.0 - required.confidence) * (
        1.0 - blocks.LEVEL
    )
