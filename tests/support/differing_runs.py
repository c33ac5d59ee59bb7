# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated runs whose levels differ: how often intervals of a few runs contain the quantile of these or other runs.

Latencies of a run are its level plus standard normal noise.  The spread of levels is a multiple of the standard error
of the median of one run: at 1, levels vary as much as the medians of runs with equal levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from fastenough.analysis.between_boards import difference_over_boards
from fastenough.analysis.bucket_movement import of_buckets
from fastenough.analysis.instructions import difference_of_means
from fastenough.analysis.paired import student
from fastenough.analysis.resampling import Blocks
from tests.support.late_values import gaussian_memory

FloatArray = NDArray[np.float64]

INTERVALS, EACH = 60, 200
"""Intervals of a run, and values in each."""
CONFIDENCE = 0.95
_EDGES = np.concatenate([[-np.inf], special.ndtri(1.0 - np.geomspace(0.999, 1e-4, 160)), [np.inf]])


@dataclass
class Contained:
    """Number of repetitions with an interval, and of those whose interval contains the quantile of these runs together,
    of all possible runs together, and of another run."""

    given: int = 0
    these: int = 0
    every: int = 0
    another: int = 0


def standard_error_of_median(memory: int) -> float:
    """Standard error of the median of one run, from the autocorrelation of the signs of a Gaussian autoregression.

    ``memory``: in values, 0 for independent ones.
    """
    lags = np.arange(1, 60 * memory + 1)
    signs = 2.0 / np.pi * np.arcsin(np.exp(-lags / memory)) if memory else np.zeros(0)
    return float(np.sqrt(np.pi / 2.0 * (1.0 + 2.0 * signs.sum()) / (INTERVALS * EACH)))


def _noise(random: np.random.Generator, memory: int) -> FloatArray:
    if not memory:
        return random.standard_normal((INTERVALS, EACH))
    return np.asarray(special.ndtri(gaussian_memory(random, INTERVALS, EACH, memory=memory)))


def blocks_of_runs(runs: Sequence[FloatArray]) -> Blocks:
    """Merged runs (intervals x values), as the program has them: counts of coarse buckets, and sums of intervals."""
    buckets = _EDGES.size - 1
    places = [np.searchsorted(_EDGES, run, side="left").clip(1) - 1 for run in runs]
    row = np.repeat(np.arange(INTERVALS), EACH)
    counts = [
        np.bincount(row * buckets + place.reshape(-1), minlength=INTERVALS * buckets).reshape(-1, buckets)
        for place in places
    ]
    values, place = np.concatenate(runs).reshape(-1), np.concatenate(places).reshape(-1)
    n = np.maximum(np.bincount(place, minlength=buckets), 1)
    mean = np.bincount(place, values, buckets) / n
    variance = np.bincount(place, (values - mean[place]) ** 2, buckets) / n
    return Blocks(tuple(counts), of_buckets([run.sum(axis=1) for run in runs], counts, mean, variance))


def quantiles_contained(
    random: np.random.Generator, repetitions: int, runs: int, spread: float, *, memory: int, quantiles: Sequence[float]
) -> list[Contained]:
    """Number of intervals of merged runs that contain the true values, for each quantile."""
    deviation, found = spread * standard_error_of_median(memory), [Contained() for _ in quantiles]
    for _ in range(repetitions):
        levels = deviation * random.standard_normal(runs + 1)
        values = [level + _noise(random, memory) for level in levels[:-1]]
        blocks, together = blocks_of_runs(values), np.concatenate(values)
        for quantile, contained in zip(quantiles, found, strict=True):
            ranks = blocks.ranks(quantile)
            if ranks is None:
                continue
            score = float(special.ndtri(quantile))
            low, high = np.quantile(ranks, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
            holds = [
                bool(np.floor(low) <= np.count_nonzero(together <= truth) < np.ceil(high))
                for truth in (
                    _of_mixture(levels[:-1], quantile),
                    score * np.hypot(1.0, deviation),
                    score + levels[-1],
                )
            ]
            contained.given += 1
            contained.these += holds[0]
            contained.every += holds[1]
            contained.another += holds[2]
    return found


def _of_mixture(levels: FloatArray, quantile: float) -> float:
    """Quantile of runs with these levels together."""
    ends = float(special.ndtri(quantile)) + levels.min() - 1e-9, float(special.ndtri(quantile)) + levels.max() + 1e-9
    return float(optimize.brentq(lambda value: float(special.ndtr(value - levels).mean()) - quantile, *ends))


Draw = Callable[[np.random.Generator, int], FloatArray]
LEVELS: dict[str, Draw] = {
    "normal": lambda random, size: random.standard_normal(size),
    "exponential": lambda random, size: random.exponential(size=size) - 1.0,
}
"""By name: levels of runs, with a mean of 0 and a standard deviation of 1."""


def _levels(random: np.random.Generator, draw: Draw, runs: int, spread: float) -> FloatArray:
    """A level of each run, as measured: with an error of 1."""
    return spread * draw(random, runs) + random.standard_normal(runs)


def differences_contained(
    random: np.random.Generator, repetitions: int, runs: int, spread: float, draw: Draw
) -> tuple[int, int, int, int]:
    """Number of repetitions in which the interval of a difference contains the true one, 0.

    Over boards measured under both conditions, over other boards under each, over runs (Welch), and over twice as many
    pairs of runs (`audit --measure`).
    """
    held = np.zeros(4, dtype=np.int64)
    orders = np.arange(2 * runs) % 2 == 0
    for _ in range(repetitions):
        first, second = (_levels(random, draw, runs, spread) for _ in range(2))
        named, same, other = ({f"{which}{i}": 0.0 for i in range(runs)} for which in "aab")
        for place, (one, two) in enumerate(zip(first, second, strict=True)):
            named[f"a{place}"], same[f"a{place}"], other[f"b{place}"] = float(one), float(two), float(two)
        paired, apart = (difference_over_boards(named, levels, CONFIDENCE) for levels in (same, other))
        assert paired is not None and apart is not None
        pairs = _levels(random, draw, 2 * runs, spread) - _levels(random, draw, 2 * runs, spread)
        ends = (
            (paired.lower, paired.upper),
            (apart.lower, apart.upper),
            difference_of_means(first.tolist(), second.tolist(), CONFIDENCE)[1:3],
            student(pairs, pairs, orders, CONFIDENCE)[:2],
        )
        held += [lower <= 0.0 <= upper for lower, upper in ends]
    paired_held, apart_held, welch_held, pairs_held = held.tolist()
    return paired_held, apart_held, welch_held, pairs_held
