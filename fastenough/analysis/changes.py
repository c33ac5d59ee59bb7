# SPDX-License-Identifier: GPL-2.0-or-later
"""Change points: when the distribution of the maxima changed.

The ranks of maxima before and after each moment are compared (Pettitt 1979), and those within and outside a stretch
(Olshen and others 2004).  The greatest difference is compared with those of shuffled maxima: a permutation test, exact
for any distribution of the maxima.  After a change point was found, each side is searched again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.maxima import Maxima

FloatArray = NDArray[np.float64]
Arcs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Begins of stretches, and their ends (exclusive)."""

LEVEL = 0.01
"""Probability of a false change point."""
LEAST_BLOCKS = 50
_LEAST_SIDE = 5
_SHUFFLED_TOGETHER = 5
"""Number of blocks shuffled together, so that a short disturbance is not a change."""
_BLOCKS = 200
_PERMUTATIONS = 299
_SEED = 20260101


@dataclass(frozen=True)
class ChangePoint:
    """``after_ns``: time measured before it; ``within_ns``: its uncertainty.  ``before_ns``, ``later_ns``: medians of
    the maxima of blocks up to the neighbouring change points."""

    wall_ns: int
    after_ns: float
    within_ns: float
    before_ns: float
    later_ns: float


def ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1 to n; equal values share their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place], dtype=np.float64)


def change_points(maxima: Maxima) -> list[ChangePoint]:
    """The change points in order of time; none with fewer than 50 maxima."""
    blocks = maxima.blocks(_BLOCKS)
    values = blocks.values_ns
    random = np.random.default_rng(_SEED)
    places = list(_confirmed(values, sorted(_search(values, 0, random)), random))
    bounds = [0, *places, values.size]
    medians = [float(np.median(values[first:last])) for first, last in pairwise(bounds) if last > first]
    return [
        ChangePoint(
            int(blocks.begin_wall_ns[place]),
            place * blocks.stretch_ns,
            blocks.stretch_ns,
            medians[number],
            medians[number + 1],
        )
        for number, place in enumerate(places)
    ]


def _search(values: FloatArray, first: int, random: np.random.Generator) -> Iterator[int]:
    """Candidate positions, unordered."""
    arc = _scanned(values, _arcs(values.size), random, _SHUFFLED_TOGETHER) if values.size >= LEAST_BLOCKS else None
    if arc is None:
        return
    places = [place for place in arc if 0 < place < values.size]
    yield from (first + place for place in places)
    for begin, end in pairwise([0, *places, values.size]):
        yield from _search(values[begin:end], first + begin, random)


def _confirmed(values: FloatArray, places: Sequence[int], random: np.random.Generator) -> Iterator[int]:
    """The places, in order, that remain a change between their neighbours, each moved to the greatest difference."""
    before = 0
    for later in [*places, values.size][1:]:
        between = values[before:later]
        arc = _scanned(between, _splits(between.size), random, 1) if between.size >= 2 * _LEAST_SIDE else None
        if arc is not None:
            before += arc[1]
            yield before


def _splits(n: int) -> Arcs:
    """Stretches from the beginning to each position."""
    ends = np.arange(_LEAST_SIDE, n - _LEAST_SIDE + 1)
    return np.zeros_like(ends), ends


def _arcs(n: int) -> Arcs:
    """The same, and stretches within, whose lengths double from one to the next."""
    arcs = [_splits(n)]
    length = _LEAST_SIDE
    while length <= n - 2 * _LEAST_SIDE:
        begins = np.arange(_LEAST_SIDE, n - _LEAST_SIDE - length + 1)
        arcs.append((begins, begins + length))
        length *= 2
    return np.concatenate([begins for begins, _ in arcs]), np.concatenate([ends for _, ends in arcs])


def _scanned(values: FloatArray, arcs: Arcs, random: np.random.Generator, together: int) -> tuple[int, int] | None:
    """The arc that differs most from the rest; None if shuffled values have arcs that differ as much.

    ``together``: number of neighbours that are shuffled as one block.
    """
    ranked = ranks(values)
    ranked -= ranked.mean()
    block_numbers = (np.arange(values.size) + int(random.integers(together))) // together
    places = random.permuted(np.tile(np.arange(block_numbers[-1] + 1), (_PERMUTATIONS, 1)), axis=1)[:, block_numbers]
    shuffled = ranked[np.argsort(places, axis=1, kind="stable")]
    observed = _differences(ranked[None, :], arcs)[0]
    greatest = _differences(shuffled, arcs).max(axis=1)
    if (1 + np.count_nonzero(greatest >= observed.max() * (1 - 1e-12))) / (1 + _PERMUTATIONS) > LEVEL:
        return None
    place = int(observed.argmax())
    return int(arcs[0][place]), int(arcs[1][place])


def _differences(rows: FloatArray, arcs: Arcs) -> FloatArray:
    """Differences between each arc and the rest, in standard errors up to a constant; rows add up to 0."""
    begins, ends = arcs
    cumulative = np.concatenate([np.zeros((rows.shape[0], 1)), np.cumsum(rows, axis=1)], axis=1)
    length = ends - begins
    return np.asarray(np.abs(cumulative[:, ends] - cumulative[:, begins]) / np.sqrt(length * (rows.shape[1] - length)))
