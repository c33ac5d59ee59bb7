# SPDX-License-Identifier: GPL-2.0-or-later
"""Blocks of time: whether a series is stationary, and the uncertainty of its quantiles.

Sources: Kuensch 1989 (moving-block bootstrap); Pitman 1937 (permutation tests); Fisher 1925
(p-values of several tests).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import special

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEVEL = 0.01
"""Significance level of the tests of stationarity and of equal runs."""
LEAST_BLOCKS = 30
_STRETCHES = 5
"""Number of stretches of time that are compared within a run."""
_CELLS = 240
"""Approximate number of cells per run; a block may begin at each of them."""
_PERMUTATIONS = 999
_ROUNDS = 100
"""Rounds of permutations for a run that may drift among others: they resolve the level of one in 500 runs."""
DRAWS = 1000
_SEED = 20260101
_CORRELATED = float(np.exp(-1.0))
"""Correlation of cells half a block apart, from which on blocks are too short: one that falls exponentially then adds
up to more than a block."""
_FALSE_REFUSALS = 0.0005
"""Significance level of each test of dependence that outlasts blocks."""
_TAIL = 0.975
"""Tail probability at which the draws get the spread of Student's t."""


def cells(counts: NDArray[Any], about: int) -> NDArray[Any]:
    """Counts of intervals (last axis: time) gathered to ``about`` cells or up to twice as many, of equal length.

    A remainder at the end is dropped.
    """
    length = max(1, counts.shape[-1] // about)
    whole = counts.shape[-1] // length
    return np.asarray(counts[..., : whole * length].reshape(*counts.shape[:-1], whole, length).sum(axis=-1))


def chance_of_equal(groups: Sequence[IntArray], rounds: int = 1) -> float:
    """p-value of equal means of these groups of counts, resolved to one in 1,000 times ``rounds``.

    A permutation test: exact for any distribution of the counts, also for bursts shorter than the interval of a count.
    Seeded, so that the same counts give the same answer.
    """
    counts = np.concatenate(groups).astype(np.float64)
    sizes = np.array([group.size for group in groups])
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    least = _spread(counts[None, :], begins, sizes)[0] * (1 - 1e-12)
    as_great = sum(
        np.count_nonzero(_spread(counts[_orders(counts.size, number)], begins, sizes) >= least)
        for number in range(rounds)
    )
    return (1 + int(as_great)) / (1 + rounds * _PERMUTATIONS)


@lru_cache(maxsize=2)
def _orders(size: int, number: int) -> IntArray:
    """Random orders of so many counts; others for each number."""
    return np.random.default_rng(_SEED + number).permuted(np.tile(np.arange(size), (_PERMUTATIONS, 1)), axis=1)


def _spread(rows: FloatArray, begins: IntArray, sizes: IntArray) -> FloatArray:
    """Sum of squares between groups, up to a constant."""
    sums = np.add.reduceat(rows, begins, axis=1)
    return np.asarray((sums * sums / sizes).sum(axis=1))


def is_stationary(runs: Sequence[IntArray]) -> bool:
    """Whether no run drifts; counts per interval of each.  Bursts do not matter, drift does.

    The level is that of all runs together: half of it for a drift that they share (Fisher 1925), half for one in some
    of them (Bonferroni).
    """
    long_runs = [run for run in runs if run.size >= 2 * _STRETCHES]
    chances = [_chance_of_no_drift(run) for run in long_runs]
    if len(chances) < 2:
        return all(chance > LEVEL for chance in chances)
    if special.chdtrc(2 * len(chances), -2.0 * float(np.log(chances).sum())) <= LEVEL / 2:
        return False
    level = LEVEL / 2 / len(chances)
    return all(
        chance > LEVEL or _chance_of_no_drift(run, _ROUNDS) > level
        for run, chance in zip(long_runs, chances, strict=True)
    )


def _chance_of_no_drift(run: IntArray, rounds: int = 1) -> float:
    return chance_of_equal(np.array_split(cells(run, LEAST_BLOCKS), _STRETCHES), rounds)


def runs_agree(counts: Sequence[IntArray]) -> bool:
    """Whether runs differ no more among themselves than their blocks do; counts per interval of each.

    Runs that are too short for the test are ignored.
    """
    long_runs = [run for run in counts if run.size >= _STRETCHES]
    if len(long_runs) < 2:
        return True
    length = max(1, min(run.size for run in long_runs) // LEAST_BLOCKS)
    cells_per_run = [cells(run, run.size // length) for run in long_runs]
    return chance_of_equal(cells_per_run) > LEVEL


def divide_into_cells(runs: Sequence[NDArray[Any]]) -> tuple[list[NDArray[Any]], int] | None:
    """Divide runs (intervals x buckets) into cells; returns the cells of each run and the number of cells per block, or
    None with too few intervals.

    Blocks are as long as 30 of them allow, begin anywhere within a run, and never reach into another.
    """
    intervals = sum(run.shape[0] for run in runs)
    if intervals < LEAST_BLOCKS:
        return None
    per_cell = max(1, intervals // _CELLS)
    cells_per_run = [cells(run.T, max(1, run.shape[0] // per_cell)).T for run in runs]
    length = max(1, sum(run.shape[0] for run in cells_per_run) // LEAST_BLOCKS)
    while length > 1 and sum(run.shape[0] // length for run in cells_per_run) < LEAST_BLOCKS:
        length -= 1
    whole = [run for run in cells_per_run if run.shape[0] >= length]
    return (whole, length) if sum(run.shape[0] // length for run in whole) >= LEAST_BLOCKS else None


def resample(runs: Sequence[IntArray], draws: int = DRAWS) -> FloatArray | None:
    """Sums of buckets (draws x buckets) over blocks drawn from runs, each intervals x buckets; None: too few blocks.

    Fewer blocks are drawn than there are, so that the spread of the draws is that of Student's t with as many degrees
    of freedom.
    """
    run_cells = divide_into_cells(runs)
    if run_cells is None:
        return None
    whole, length = run_cells
    blocks = sum(run.shape[0] // length for run in whole)
    sums = np.concatenate([_moving(run, length) for run in whole])
    narrower = float(special.ndtri(_TAIL) / special.stdtrit(blocks - 1, _TAIL)) ** 2
    number = max(2, round((blocks - 1) * narrower))
    return np.asarray(_weights(number, sums.shape[0], draws) @ sums.astype(np.float64))


@lru_cache(maxsize=2)
def _weights(number: int, places: int, draws: int) -> FloatArray:
    """Number of times that each block is drawn (draws x blocks), the same for all series of two runs."""
    random = np.random.default_rng(_SEED)
    return random.multinomial(number, np.full(places, 1.0 / places), size=draws).astype(np.float64)


def outlasts_blocks(courses: Sequence[FloatArray]) -> bool:
    """Whether values depend on each other for longer than a block, so that blocks are not independent.

    ``courses``: the tested values of each run, interval by interval.  The test is the correlation of cells half a block
    apart, each run about its own mean.
    """
    run_cells = divide_into_cells([course[:, None] for course in courses])
    if run_cells is None:
        return False
    whole, length = run_cells
    apart = max(1, length // 2)
    pairs = sum(max(0, run.shape[0] - apart) for run in whole)
    by_chance = float(-special.ndtri(_FALSE_REFUSALS) / max(1, pairs) ** 0.5)
    return _correlation([run[:, 0] for run in whole], apart) > max(_CORRELATED, by_chance)


def _correlation(courses: Sequence[FloatArray], apart: int) -> float:
    """Correlation of cells ``apart`` cells from each other within each run; 0 if cells do not vary."""
    centred = [course - course.mean() for course in courses]
    square = sum(float(course @ course) for course in centred)
    together = sum(float(course[:-apart] @ course[apart:]) for course in centred if course.size > apart)
    return together / square if square > 0 else 0.0


def wider_by(courses: Sequence[FloatArray]) -> float:
    """Factor by which the spread of a sum over time exceeds that of independent blocks: sqrt(1 + 2 r).

    ``courses``: the summed values of each run, interval by interval.  r: the correlation of neighbouring blocks, at
    least 0, plus its standard error if it exceeds that.  Drawing blocks separates values that depend on each other for
    longer than a block.
    """
    run_cells = divide_into_cells([course[:, None] for course in courses])
    if run_cells is None:
        return 1.0
    whole, length = run_cells
    blocks = [_moving(run, length)[:, 0] for run in whole]
    every = np.concatenate(blocks)
    centre, square = float(every.mean()), float(every.var())
    pairs = np.concatenate([(sums[:-length] - centre) * (sums[length:] - centre) for sums in blocks])
    if not pairs.size or square == 0.0:
        return 1.0
    correlation, error = float(pairs.mean()) / square, (every.size / length) ** -0.5
    return float(np.sqrt(1.0 + 2.0 * (correlation + error if correlation > error else max(0.0, correlation))))


def _moving(run: NDArray[Any], length: int) -> NDArray[Any]:
    up_to = np.concatenate([np.zeros((1, run.shape[1]), dtype=run.dtype), np.cumsum(run, axis=0)])
    return np.asarray(up_to[length:] - up_to[:-length])


def ranks_of_quantile(
    up_to: FloatArray, total: IntArray, quantile: float, size_of: Callable[[int], float]
) -> FloatArray:
    """Rank, among all values, of the quantile of each draw; ``total`` by bucket.

    ``up_to`` (draws x buckets): number of values of the draw in each bucket or below it.

    Within a bucket, values are distributed as in all samples, up to chance: the number of values below a place in the
    bucket varies binomially, in clusters of ``size_of(bucket)`` values.
    """
    values_below = quantile * up_to[:, -1:]
    bucket = np.minimum((up_to < values_below).sum(axis=1), up_to.shape[1] - 1)
    row = np.arange(up_to.shape[0])
    below = np.where(bucket > 0, up_to[row, bucket - 1], 0.0)
    here = up_to[row, bucket] - below
    share = np.where(here > 0, (values_below[:, 0] - below) / np.maximum(here, 1e-9), 1.0)
    share = np.clip(share, 0.0, 1.0)
    sizes = np.zeros(total.size)
    for place in np.unique(bucket):
        sizes[place] = size_of(int(place))
    chance = np.random.default_rng(_SEED + 1).standard_normal(row.size)
    share += chance * np.sqrt(share * (1 - share) * sizes[bucket] / np.maximum(total[bucket], 1))
    before = np.cumsum(total) - total
    return np.asarray(np.maximum(1.0, before[bucket] + np.clip(share, 0.0, 1.0) * total[bucket]))
