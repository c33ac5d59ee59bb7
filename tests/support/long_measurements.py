# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated measurements of millions of activations, to test whether plans and advice suffice for a verdict.

Only late activations are simulated.  Bursts begin independently, may overlap, and may begin before the measurement.
Only the verdicts and the advice are computed by the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.cpu_evidence import CpuEvidence
from fastenough.analysis.planning import activations_to_decide
from fastenough.analysis.power import share_of
from fastenough.model import Requirement
from tests.support.confidence import WIDTH, Counted, joined, verdicts

IntArray = NDArray[np.int64]

FIRST = 60
"""Number of intervals of the first measurement, which is followed by the advised one."""
_LEAD = 50
"""Simulated time before a measurement, in mean lengths of a burst."""


@dataclass(frozen=True)
class Bursts:
    """Bursts with this mean length; ``lengths``: draws a number of lengths."""

    mean: float
    lengths: Callable[[np.random.Generator, int], IntArray]

    def measured(self, random: np.random.Generator, intervals: int, rate: float) -> Counted:
        """One measurement, in which activations are late at this rate in the long run."""
        n, lead = intervals * WIDTH, ceil(_LEAD * self.mean)
        number = random.poisson((n + lead) * -np.log1p(-rate) / self.mean)
        begins = np.sort(random.integers(-lead, n, number))
        return counted_bursts(begins, self.lengths(random, number), n)


def of_length(length: int) -> Bursts:
    return Bursts(length, lambda random, number: np.full(number, length))


def geometric_of(mean: int) -> Bursts:
    return Bursts(mean, lambda random, number: random.geometric(1 / mean, number))


def counted_bursts(begins: IntArray, lengths: IntArray, n: int) -> Counted:
    """Counts of bursts, sorted by begin, within the ``n`` activations."""
    ends = np.minimum(np.maximum.accumulate(begins + lengths), n)
    begins = np.maximum(begins, 0)
    begins, ends = begins[ends > begins], ends[ends > begins]
    before = np.concatenate([[-1], ends[:-1]])[: ends.size]
    first = np.flatnonzero(begins > before)
    runs = np.append(ends[first[1:] - 1], ends[-1:]) - begins[first]
    late = np.repeat(begins[first] - np.cumsum(runs) + runs, runs) + np.arange(runs.sum())
    rows = [np.array([value]) for value in (late.size, runs.size, (runs**2).sum(), runs.max(initial=0))]
    exceeded, number, squares, longest = rows
    return Counted(n, exceeded, number, squares, longest, np.bincount(late // WIDTH, minlength=n // WIDTH)[None, :])


@dataclass(frozen=True)
class Advised:
    """Undecided first measurements: their number, and of those with advice the numbers with a verdict and with a wrong
    verdict after exactly the advised total.  ``times``: each such total, relative to the first measurement."""

    undecided: int
    decided: int
    wrong: int
    times: tuple[float, ...]

    @property
    def given(self) -> int:
        """Number of measurements with advice."""
        return len(self.times)


def _is_decided(seen: CpuEvidence, required: Requirement) -> bool:
    return bool(seen.within or seen.p_value <= 1 - required.confidence)


def after_advice(
    bursts: Bursts, random: np.random.Generator, repetitions: int, rate: float, required: Requirement
) -> Advised:
    """Measure once and, where that is undecided, measure until the advised total."""
    undecided, decided, wrong, times = 0, 0, 0, []
    for _ in range(repetitions):
        counts = bursts.measured(random, FIRST, rate)
        [first] = verdicts(counts, required)
        if _is_decided(first, required):
            continue
        undecided += 1
        deciding = activations_to_decide(first)
        if deciding is None:
            continue
        times.append(deciding / counts.n)
        more = bursts.measured(random, max(1, ceil((deciding - counts.n) / WIDTH)), rate)
        [second] = verdicts(joined([counts, more], 1), required)
        failed = second.p_value <= 1 - required.confidence
        decided += second.within or failed
        wrong += failed if rate <= required.miss_rate else second.within
    return Advised(undecided, decided, wrong, tuple(times))


_STEP, _LONGEST = 1.25, 1024.0
"""Factor from one length to the next, and the longest one, relative to the first measurement."""
_LEAST_MEASUREMENTS = 40


def needed_length(
    bursts: Bursts, random: np.random.Generator, repetitions: int, rate: float, *, required: Requirement, goal: float
) -> float | None:
    """Least length, relative to the first measurement, after which this share of measurements has a verdict."""
    times = 1.0
    while times <= _LONGEST:
        decided = _verdicts(bursts, random, ceil(FIRST * times), rate, required)
        if share_of(decided, goal, repetitions, min(_LEAST_MEASUREMENTS, repetitions)) >= goal:
            return times
        times *= _STEP
    return None


def _verdicts(
    bursts: Bursts, random: np.random.Generator, intervals: int, rate: float, required: Requirement
) -> Iterator[float]:
    """Whether each of an endless series of measurements has a verdict: 1 or 0."""
    while True:
        [seen] = verdicts(bursts.measured(random, intervals, rate), required)
        yield float(_is_decided(seen, required))


def shares(
    bursts: Bursts, random: np.random.Generator, repetitions: int, n: int, rate: float, *, required: Requirement
) -> tuple[float, float]:
    """Shares of PASS and of FAIL in measurements of ``n`` activations, rounded up to whole intervals."""
    passed = failed = 0
    for _ in range(repetitions):
        [seen] = verdicts(bursts.measured(random, max(1, ceil(n / WIDTH)), rate), required)
        passed += seen.within
        failed += seen.p_value <= 1 - required.confidence
    return passed / repetitions, failed / repetitions
