# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the program's verdicts and intervals are wrong, counted on made-up machines of which the truth is known.

A verdict is judged where it is hardest: the true rate is the one that is allowed, so that PASS and FAIL are both wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, product
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from fastenough.analysis.blocks import runs_agree
from fastenough.analysis.bootstrap import Edges, difference_of
from fastenough.analysis.bucket_movement import of_buckets
from fastenough.analysis.clusters import cluster_size, holm
from fastenough.analysis.cpu_evidence import CpuEvidence
from fastenough.analysis.dependence import MORE_OFTEN, has_long_memory, scale_of
from fastenough.analysis.disturbances import Disturbances, OrderSource, RunLengths, dominance, grouped_counts
from fastenough.analysis.merged import Merged
from fastenough.analysis.planning import activations_to_decide
from fastenough.analysis.resampling import Blocks
from fastenough.model import Requirement
from fastenough.recording import Histogram
from tests.support.late_values import Late, Machine, Values

WIDTH = 1000
"""Activations in an interval: one second at 1 kHz."""
STATED = 0.05
_AT_ONCE = 40_000_000
"""Activations of so many repetitions are in memory at a time."""
_VALUES = Merged("made up", (0,), 1.0, 1_000_000, True, False, Histogram(10), 0, 0, 0, ("made up",), "a", "b")

Found = NDArray[np.bool_]
"""Repetitions x looks."""


def most_errors(repetitions: int, stated: float = STATED) -> float:
    """The 99.9 % quantile of the share of errors where their rate is the one stated."""
    return float(stats.binom.ppf(0.999, repetitions, stated)) / repetitions


@dataclass(frozen=True)
class Counted:
    """What is counted of each repetition, by brute force on its activations; ``counts``: repetitions x intervals."""

    n: int
    exceeded: NDArray[np.int64]
    runs: NDArray[np.int64]
    squares: NDArray[np.int64]
    longest: NDArray[np.int64]
    counts: NDArray[np.int64]

    def part(self, which: slice) -> Counted:
        return Counted(
            self.n, self.exceeded[which], self.runs[which], self.squares[which], self.longest[which], self.counts[which]
        )


def counted(late: Late, width: int = WIDTH) -> Counted:
    """Exceedances, their runs, the sum of squares of these, and the longest."""
    repetitions, n = late.shape
    padded = np.zeros((repetitions, n + 2), dtype=np.int8)
    padded[:, 1:-1] = late
    edges = np.diff(padded, axis=1)
    row, begin = np.nonzero(edges == 1)
    lengths = np.nonzero(edges == -1)[1] - begin
    squares = np.bincount(row, lengths.astype(np.float64) ** 2, repetitions).astype(np.int64)
    counts = late.reshape(repetitions, -1, width).sum(axis=2)
    longest = np.zeros(repetitions, dtype=np.int64)
    np.maximum.at(longest, row, lengths)
    return Counted(n, counts.sum(axis=1), np.bincount(row, minlength=repetitions), squares, longest, counts)


def joined(parts: list[Counted], axis: int) -> Counted:
    """Other repetitions (0), or more of each (1; a run at the seam counts twice)."""
    if axis == 0:
        return Counted(
            parts[0].n,
            np.concatenate([part.exceeded for part in parts]),
            np.concatenate([part.runs for part in parts]),
            np.concatenate([part.squares for part in parts]),
            np.concatenate([part.longest for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )
    return Counted(
        sum(part.n for part in parts),
        np.sum([part.exceeded for part in parts], axis=0),
        np.sum([part.runs for part in parts], axis=0),
        np.sum([part.squares for part in parts], axis=0),
        np.max([part.longest for part in parts], axis=0),
        np.concatenate([part.counts for part in parts], axis=1),
    )


def made(machine: Machine, random: np.random.Generator, repetitions: int, intervals: int, rate: float) -> Counted:
    """So many repetitions of a measurement."""
    at_once = max(1, min(repetitions, _AT_ONCE // (intervals * WIDTH)))
    left, parts = repetitions, []
    while left > 0:
        parts.append(counted(machine(random, min(at_once, left), intervals, WIDTH, rate)))
        left -= at_once
    return joined(parts, 0)


def disturbances_of(counts: Counted, which: int, source: OrderSource) -> Disturbances:
    """As the program counts them out of a recording: all of it, or only what intervals say (version 1, imports)."""
    x, s = int(counts.exceeded[which]), counts.counts[which]
    (groups,) = grouped_counts(s, np.full(s.size, WIDTH), [s])
    known = source is OrderSource.LIMIT
    runs, squares = (int(counts.runs[which]), int(counts.squares[which])) if known else (x, 0)
    scale = scale_of(s, runs)
    size = cluster_size(x, runs, squares, s, independent=not scale)
    longest = float(counts.longest[which] if known else np.max(s - s.mean()))
    return Disturbances(
        counts.n,
        counts.n * 10**6,
        x,
        x,
        groups.size,
        runs,
        int(groups.max(initial=0)),
        scale,
        size.mean,
        longest,
        source,
        s,
        s,
        np.zeros(s.size, dtype=np.int64),
        size.error,
        dominance(RunLengths(runs, squares, longest), s) if x else 0.0,
    )


def verdicts(
    counts: Counted, requirement: Requirement, source: OrderSource = OrderSource.LIMIT
) -> Iterator[CpuEvidence]:
    """What the program says of each repetition."""
    for which in range(counts.exceeded.size):
        yield CpuEvidence(_VALUES, disturbances_of(counts, which, source), requirement, requirement.confidence)


@dataclass(frozen=True)
class Errors:
    """Shares of all repetitions."""

    passed: float
    failed: float
    changing: float

    @property
    def undecided(self) -> float:
        return 1.0 - self.passed - self.failed


def errors(
    counts: Counted, allowed: float, source: OrderSource = OrderSource.LIMIT, longest: int | None = None
) -> Errors:
    """At a true rate that is the one allowed: false PASS, false FAIL, refused as not stationary."""
    found = list(verdicts(counts, Requirement(1, allowed, 1 - STATED, longest), source))
    n = len(found)
    return Errors(
        sum(one.within for one in found) / n,
        sum(one.p_value <= STATED for one in found) / n,
        sum(not one.steady for one in found) / n,
    )


def by_looks_of_rates(
    rates: NDArray[np.float64], random: np.random.Generator, expected: float, looks: Sequence[int], true: float = 1.0
) -> tuple[Found, Found, Found]:
    """Whether each look passes, fails, and is refused for a long memory; repetitions x looks.

    ``rates``: of single late activations in each interval, relative to ``true`` times the allowed one, of which so many
    are ``expected`` in all.  A lower value is exceeded 30 times as often, at the same rates.  ``looks``: intervals
    measured by then.
    """
    mean = true * expected / rates.shape[1] * rates
    rare = random.poisson(mean)
    frequent = rare + random.poisson((MORE_OFTEN - 1) * mean)
    required = Requirement(1, expected / (rates.shape[1] * WIDTH), 1 - STATED)
    found = np.zeros((3, rates.shape[0], len(looks)), dtype=np.bool_)
    for which, look in product(range(rates.shape[0]), range(len(looks))):
        one = _of_intervals(rare[which, : looks[look]], frequent[which, : looks[look]], required)
        found[:, which, look] = one.within, one.p_value <= STATED, one.disturbances.long_memory
    passed, failed, refused = found
    return passed, failed, refused


def _of_intervals(rare: NDArray[np.int64], frequent: NDArray[np.int64], required: Requirement) -> CpuEvidence:
    """Of single late activations, so many in each interval."""
    total, rows = rare.sum(keepdims=True), rare[None, :]
    counts = Counted(rare.size * WIDTH, total, total, total, np.minimum(total, 1), rows)
    seen = disturbances_of(counts, 0, OrderSource.LIMIT)
    lasting = has_long_memory(frequent, seen.most)
    return CpuEvidence(_VALUES, replace(seen, long_memory=lasting), required, required.confidence)


@dataclass(frozen=True)
class Declared:
    """Shares of all repetitions in which a machine at its limit passes though the longest burst declared is too short,
    fails, and in which "no more than one in X" is wrong; those without any late activation by themselves."""

    passed: float
    passed_unseen: float
    failed: float
    misstated: float
    misstated_unseen: float
    passed_at_half: float

    @property
    def worst(self) -> float:
        """The greatest error of statements for which anything late was seen."""
        return max(self.passed, self.failed, self.misstated)


def errors_of_declared(counts: Counted, allowed: float, size: int, longest: int = 1) -> Declared:
    """Of machines one cause of which makes ``size`` disturbances, and a declaration that none makes more than one."""
    expected = allowed * counts.n
    found, half = (list(verdicts(counts, Requirement(1, rate, 1 - STATED, longest))) for rate in (allowed, 2 * allowed))
    unseen = np.array([one.disturbances.possibly == 0 for one in found])
    passed = np.array([one.within for one in found])
    true = np.array(
        [one.disturbances.time_ns / expected * (size if one.disturbances.clusters.scale else 1) for one in found]
    )
    stated = np.array([one.resolved for one in found])
    misstated = stated & (np.array([one.every_ns for one in found]) > true)
    return Declared(
        (passed & ~unseen).mean(),
        (passed & unseen).mean(),
        float(np.mean([one.p_value <= STATED for one in found])),
        (misstated & ~unseen).mean(),
        (misstated & unseen).mean(),
        float(np.mean([one.within for one in half])),
    )


def errors_of_cpus(each: list[Counted], allowed: float) -> Errors:
    """The same of CPUs judged together: PASS where all pass, FAIL by Holm's method over them."""
    requirement = Requirement(1, allowed, 1 - STATED)
    together = list(zip(*(verdicts(counts, requirement) for counts in each), strict=True))
    n = len(together)
    return Errors(
        sum(all(one.within for one in cpus) for cpus in together) / n,
        sum(any(holm([one.p_value for one in cpus], STATED)) for cpus in together) / n,
        sum(any(not one.steady for one in cpus) for cpus in together) / n,
    )


@dataclass(frozen=True)
class RunErrors(Errors):
    """``changing``: share of repetitions whose runs are not merged; ``unsteady``: refused as not stationary."""

    unsteady: float


def errors_of_runs(
    machine: Machine, random: np.random.Generator, rates: NDArray[np.float64], intervals: int, allowed: float
) -> RunErrors:
    """The same of runs of one CPU, merged where they agree.  ``rates``: repetitions x runs."""
    requirement, found = Requirement(1, allowed, 1 - STATED), []
    for each in rates:
        runs = [made(machine, random, 1, intervals, rate) for rate in each]
        merged = runs_agree([run.counts[0] for run in runs])
        shown = [_of_merged(runs, requirement)] if merged else [*chain(*(verdicts(run, requirement) for run in runs))]
        found.append(
            (
                all(one.within for one in shown),
                any(holm([one.p_value for one in shown], STATED)),
                not merged,
                not all(one.steady for one in shown),
            )
        )
    return RunErrors(*map(float, np.mean(found, axis=0)))


def _of_merged(runs: list[Counted], requirement: Requirement) -> CpuEvidence:
    seen = disturbances_of(joined(runs, 1), 0, OrderSource.LIMIT)
    run_of = np.repeat(np.arange(len(runs)), [run.counts.shape[1] for run in runs])
    return CpuEvidence(_VALUES, replace(seen, run_of=run_of), requirement, requirement.confidence)


MOST_LOOKS, MOST_TIMES = 5, 40


def by_advice(
    machine: Machine, random: np.random.Generator, repetitions: int, intervals: int, allowed: float
) -> Errors:
    """Measure, and while it is undecided measure as much more as the program says, up to 40 times as long in all."""
    requirement = Requirement(1, allowed, 1 - STATED)
    passed = failed = 0
    for _ in range(repetitions):
        counts = made(machine, random, 1, intervals, allowed)
        for _ in range(MOST_LOOKS):
            [one] = verdicts(counts, requirement)
            passed, failed = passed + one.within, failed + (one.p_value <= STATED)
            deciding = activations_to_decide(one)
            more = 0 if deciding is None else ceil((deciding - counts.n) / WIDTH)
            there = counts.counts.shape[1]
            if one.within or one.p_value <= STATED or not 0 < more <= MOST_TIMES * intervals - there:
                break
            counts = joined([counts, made(machine, random, 1, more, allowed)], 1)
    return Errors(passed / repetitions, failed / repetitions, 0.0)


class Again(StrEnum):
    """What is judged at each look."""

    ALL = "all data together"
    NEW = "new data each time, PASS and FAIL if all data together show the same"
    ALONE = "new data each time, judged alone"


def by_looks(counts: Counted, looks: int, requirement: Requirement, again: Again) -> tuple[Found, Found]:
    """Whether each look passes, and fails; each repetition is what is measured for one look."""
    found = [_looked(counts, first, looks, requirement, again) for first in range(0, counts.exceeded.size, looks)]
    passed, failed = np.array(found).transpose(2, 0, 1)
    return passed, failed


def _looked(counts: Counted, first: int, looks: int, requirement: Requirement, again: Again) -> list[tuple[bool, bool]]:
    new = list(verdicts(counts.part(slice(first, first + looks)), requirement))
    if again is Again.ALONE:
        return [(one.within, one.p_value <= STATED) for one in new]
    found, data = [], counts.part(slice(first, first + 1))
    for look in range(looks):
        if look:
            data = joined([data, counts.part(slice(first + look, first + look + 1))], 1)
        [every] = verdicts(data, requirement)
        judged = every if again is Again.ALL else new[look]
        found.append((judged.within and every.within, max(judged.p_value, every.p_value) <= STATED))
    return found


def by_chosen_limit(
    random: np.random.Generator, repetitions: int, intervals: int, allowed: float, above: NDArray[np.float64]
) -> Found:
    """Whether any limit passes of those that an independent machine exceeds too often: one is chosen after looking.

    ``above``: true rates above each limit, ascending, in units of the allowed one.  A burst of 1 is declared.
    """
    required, passed = Requirement(1, allowed, 1 - STATED, 1), []
    for _ in range(repetitions):
        values = random.random((1, intervals * WIDTH), dtype=np.float32)
        found = [next(verdicts(counted(values < share * allowed), required)) for share in above]
        passed.append(any(share > 1 and _passes_above(found[: which + 1]) for which, share in enumerate(above)))
    return np.array(passed)


def _passes_above(found: list[CpuEvidence]) -> bool:
    """Whether the requirement is met at the last limit and at each higher one before it, as the program requires."""
    *higher, asked = found
    shown = (one.within if one.upper is not None or asked.upper is None else one.steady for one in higher)
    return asked.within and all(shown)


@dataclass(frozen=True)
class Nights:
    """Shares: of the nights that pass and that fail, and of the months in which any does."""

    passed: float
    failed: float
    any_passed: float
    any_failed: float


def by_night(counts: Counted, nights: int, requirement: Requirement) -> Nights:
    """Of a gate that judges the data of each night by themselves; each repetition is a night."""
    found = [(one.within, one.p_value <= 1 - requirement.confidence) for one in verdicts(counts, requirement)]
    passed, failed = np.array(found).T.reshape(2, -1, nights)
    return Nights(passed.mean(), failed.mean(), passed.any(axis=1).mean(), failed.any(axis=1).mean())


@dataclass(frozen=True)
class Coverage:
    """How often an interval holds the truth; ``given``: how often there is one at all."""

    quantile: float
    difference: float
    given: float


def coverage(
    values: Values,
    random: np.random.Generator,
    repetitions: int,
    intervals: int,
    quantile: float,
    *,
    one_bucket: bool = False,
) -> Coverage:
    """Of the interval of a quantile, and of the difference to another measurement of the same machine.

    ``one_bucket``: one bucket of the intervals holds all values.
    """
    held = same = given = 0
    before: NDArray[np.float64] | None = None
    for _ in range(repetitions):
        made_up = values(random, intervals, WIDTH)
        drawn = _drawn(made_up, quantile, _ONE_BUCKET if one_bucket else _EDGES)
        if drawn is None:
            continue
        given += 1
        low, high = np.quantile(drawn, [0.025, 0.975])
        below = int((made_up <= quantile).sum())
        held += bool(np.floor(low) <= below < np.ceil(high))
        at = np.sort(made_up, axis=None)[np.ceil(drawn).astype(np.int64) - 1]
        if before is not None:
            ends = np.quantile(at - random.permutation(before), [0.025, 0.975])
            same += bool(ends[0] <= 0 <= ends[1])
        before = at
    return Coverage(held / max(1, given), same / max(1, given - 1), given / repetitions)


_ONE_BUCKET = np.array([0.0, 1.0])
_EDGES = 1.0 - np.concatenate([np.geomspace(1.0, 1e-5, 160), [0.0]])


def _drawn(values: NDArray[np.float64], quantile: float, edges: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Ranks in draws of blocks, from buckets and sums of intervals as the program has them."""
    bucket = np.searchsorted(edges, values, side="left").clip(1) - 1
    return blocks_of_values(values, bucket, edges.size - 1).ranks(quantile)


def blocks_of_values(values: NDArray[np.float64], bucket: NDArray[np.int64], buckets: int) -> Blocks:
    """Blocks of one run (intervals x values), of each of which the bucket is given."""
    row, place = np.repeat(np.arange(values.shape[0]), values.shape[1]), bucket.reshape(-1)
    counts = np.bincount(row * buckets + place, minlength=values.shape[0] * buckets).reshape(-1, buckets)
    n = np.maximum(counts.sum(axis=0), 1)
    mean = np.bincount(place, values.reshape(-1), buckets) / n
    variance = np.bincount(place, (values - mean[bucket]).reshape(-1) ** 2, buckets) / n
    movement = of_buckets([values.sum(axis=1)], [counts], mean, variance)
    return Blocks((counts,), movement)


def growth_errors(values: Values, random: np.random.Generator, repetitions: int, intervals: int) -> Errors:
    """Of a limit on growth of the median by 1 %, where it has grown by that, and one bucket holds all values."""
    found = []
    for _ in range(repetitions):
        base, other = (_median_drawn(values(random, intervals, WIDTH), factor) for factor in (1.0, 1.01))
        drawn = difference_of(base, other, more_share=0.01)
        decided = (
            (False, False) if drawn is None else (drawn.is_no_more(1 - STATED), drawn.chance_of_no_more() <= STATED)
        )
        found.append(decided)
    passed, failed = np.mean(found, axis=0)
    return Errors(float(passed), float(failed), 0.0)


def _median_drawn(shares: NDArray[np.float64], factor: float) -> Edges | None:
    """The median of latencies with a standard deviation of 0.3 %, in draws of blocks."""
    latencies = 20_000.0 * factor * (1.0 + 0.003 * special.ndtri(shares))
    blocks = blocks_of_values(latencies, np.zeros(latencies.shape, dtype=np.int64), 1)
    ranks = blocks.ranks(0.5)
    if ranks is None:
        return None
    at = np.sort(latencies, axis=None)[np.ceil(ranks).astype(np.int64) - 1]
    return Edges(at, at, blocks.number - 1)
