# SPDX-License-Identifier: GPL-2.0-or-later
"""Intervals of quantiles of merged samples, from blocks of their intervals: bursts and drift widen them.

Source: Kuensch 1989 (moving-block bootstrap), on the buckets of intervals; :mod:`blocks` draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.blocks import (
    DRAWS,
    LEAST_BLOCKS,
    divide_into_cells,
    outlasts_blocks,
    ranks_of_quantile,
    resample,
    wider_by,
)
from fastenough.analysis.bucket_movement import Movement, movement_of
from fastenough.analysis.clusters import size_at_all_scales
from fastenough.model import Series
from fastenough.recording import Histogram, Recording
from fastenough.recording.timeline import Course, IntArray

FloatArray = NDArray[np.float64]

LEAST_ABOVE = 20
"""Independent disturbances above a quantile, with fewer of which it has no interval."""
_MOST_CELLS = 240
"""Intervals of a long run are gathered to about so many: memory does not grow with its length."""


class NoInterval(StrEnum):
    """Why a quantile has no interval."""

    FEW_SAMPLES = "too few samples"
    DEPENDENT = "samples depend on each other for longer than a 30th of the measured time"
    MISSED = "quantiles may lie among missed periods without a value"


@dataclass(frozen=True, eq=False)
class Blocks:
    """Merged samples over time: ``counts`` of each run (cells x buckets), ascending; ``draws``: how many are made.

    ``movement``: of values within their buckets, None where sums do not show it.
    """

    counts: tuple[IntArray, ...]
    movement: Movement | None
    draws: int = DRAWS

    @cached_property
    def _total(self) -> IntArray:
        """Counts of all runs, cells x buckets."""
        return np.concatenate(self.counts)

    @cached_property
    def _cumulative_draws(self) -> FloatArray | None:
        """Values of each draw in each bucket or below it: the same for all quantiles."""
        draws = resample(self.counts, self.draws)
        return None if draws is None else np.cumsum(draws, axis=1)

    @property
    def number(self) -> int:
        """Number of blocks; 0 if they are too few to draw from."""
        run_cells = divide_into_cells(self.counts)
        return 0 if run_cells is None else sum(run.shape[0] // run_cells[1] for run in run_cells[0])

    def with_last_bucket(self, counts: Sequence[IntArray]) -> Blocks:
        """These blocks with one more bucket above all others; ``counts``: those of each run, by cell."""
        return replace(
            self,
            counts=tuple(np.column_stack(pair) for pair in zip(self.counts, counts, strict=True)),
            movement=None if self.movement is None else self.movement.with_last_bucket(),
        )

    def redrawn(self, draws: int) -> Blocks:
        """These blocks with another number of draws."""
        return replace(self, draws=draws)

    def ranks(self, quantile: float) -> FloatArray | None:
        """Ranks of the quantile among all values, one per draw; None: see :meth:`no_interval`."""
        if self._cumulative_draws is None or self.no_interval(quantile) is not None:
            return None
        total = self._total.sum(axis=0)
        ranks = ranks_of_quantile(self._cumulative_draws, total, quantile, self._size_within)
        n = float(total.sum())
        centre, wider = quantile * n, wider_by(self._below(self._bucket(quantile), quantile))
        return np.clip(centre + (ranks - centre) * wider, 1.0, n)

    def no_interval(self, quantile: float) -> NoInterval | None:
        """Why the quantile has no interval: too few blocks or disturbances, or blocks that are too short; None: it has
        one."""
        if not self.number or not self._total.any():
            return NoInterval.FEW_SAMPLES
        bucket = self._bucket(quantile)
        if self._outlasts_blocks(bucket, self._below(bucket, quantile)):
            return NoInterval.DEPENDENT
        return NoInterval.FEW_SAMPLES if self._independent_above(bucket, quantile) < LEAST_ABOVE else None

    def _bucket(self, quantile: float) -> int:
        """Index of the bucket that contains the quantile of all values."""
        up_to = np.cumsum(self._total.sum(axis=0))
        return int(np.searchsorted(up_to, quantile * up_to[-1]))

    def _below(self, bucket: int, quantile: float) -> list[FloatArray]:
        """For each run, by cell: number of values up to a bucket, minus the number that the quantile expects."""
        return [run[:, : bucket + 1].sum(axis=1) - quantile * run.sum(axis=1) for run in self.counts]

    def _outlasts_blocks(self, bucket: int, below: Sequence[FloatArray]) -> bool:
        """Whether dependence lasts longer than a block, by the values ``below`` or by the sums, if these show it."""
        by_sums = [] if self.movement is None or self._size_by_sums(bucket) is None else self.movement.within(bucket)
        return outlasts_blocks(below) or outlasts_blocks(by_sums)

    def _independent_above(self, bucket: int, quantile: float) -> float:
        """Equivalent number of independent exceedances of the quantile, or of the values below it if these are fewer.

        In the ``bucket`` that holds the quantile, only the values beyond the quantile count.
        """
        total = self._total
        above = total[:, bucket:].sum(axis=1)
        few = above if quantile >= 0.5 else total.sum(axis=1) - above
        beyond = min(float(few.sum()), float(total.sum()) * min(quantile, 1.0 - quantile))
        return beyond / max(size_at_all_scales(few), self._size_by_sums(bucket) or 1.0)

    def _size_by_sums(self, bucket: int) -> float | None:
        return None if self.movement is None else self.movement.size(bucket)

    def _size_within(self, bucket: int) -> float:
        """Size of the clusters of a bucket's values, from the values beside it and from the exact sums.

        If neither shows it, clusters are assumed to be as long as a block.
        """
        total = self._total
        beside = [total[:, :bucket].sum(axis=1), total[:, bucket + 1 :].sum(axis=1)]
        sizes = [size_at_all_scales(counts) for counts in beside if counts.sum() >= LEAST_ABOVE]
        by_sums = self._size_by_sums(bucket)
        if by_sums is not None:
            sizes.append(by_sums)
        return max(sizes) if sizes else float(total[:, bucket].sum()) / LEAST_BLOCKS


def _courses_by_run(parts: Sequence[tuple[Recording, Series]]) -> list[tuple[Recording, list[Course]]]:
    by_run: dict[str, tuple[Recording, list[Course]]] = {}
    for recording, series in parts:
        run_courses = by_run.setdefault(recording.run_id, (recording, []))
        run_courses[1].append(recording.timeline.courses[series.id])
    return list(by_run.values())


def _cell_length(runs: Sequence[tuple[Recording, list[Course]]]) -> int:
    """Number of intervals in a cell."""
    return max(1, sum(len(recording.timeline) for recording, _ in runs) // _MOST_CELLS)


def blocks_of(parts: Sequence[tuple[Recording, Series]], magnitudes: bool) -> Blocks:
    """Blocks of merged samples, all series of a run together; ``magnitudes``: absolute values of a two-sided series."""
    runs = _courses_by_run(parts)
    index, length = _all_buckets([course for _, courses in runs for course in courses], magnitudes), _cell_length(runs)
    counts = tuple(
        _counts(courses, index, magnitudes, length, max(1, len(recording.timeline) // length))
        for recording, courses in runs
    )
    sums_known = index.size > 0 and not magnitudes and all(series.source_summary is None for _, series in parts)
    movement = _movement(parts, [courses for _, courses in runs], counts, length, index) if sums_known else None
    return Blocks(counts, movement)


def with_missed(blocks: Blocks, parts: Sequence[tuple[Recording, Series]]) -> Blocks:
    """The blocks of merged samples with the missed periods of the same samples, which rank above all values."""
    runs = _courses_by_run(parts)
    missed = [np.zeros(count.shape[0], dtype=np.int64) for count in blocks.counts]
    for (_, courses), cells in zip(runs, missed, strict=True):
        _add_by_cell(cells, [(course.at, course.missed) for course in courses], _cell_length(runs))
    return blocks.with_last_bucket(missed)


def _add_by_cell(
    cells: IntArray | FloatArray, of_intervals: Iterable[tuple[IntArray, IntArray | FloatArray]], length: int
) -> None:
    """Add values of intervals, given with their numbers, to the cells; what is left over belongs to the last one."""
    for at, values in of_intervals:
        np.add.at(cells, np.minimum(at // length, cells.size - 1), values)


def _movement(
    parts: Sequence[tuple[Recording, Series]],
    runs: Sequence[Sequence[Course]],
    counts: Sequence[IntArray],
    length: int,
    index: IntArray,
) -> Movement | None:
    """By the sums of cells, each of so many intervals (see ``_counts``), and the totals; ``index``: the buckets."""
    if len({series.unit_ns for _, series in parts}) > 1 or len({course.k for run in runs for course in run}) > 1:
        return None
    sums = [np.zeros(count.shape[0]) for count in counts]
    for run, cells in zip(runs, sums, strict=True):
        _add_by_cell(cells, [(course.at, course.sum) for course in run], length)
    totals = [recording.totals[series.id] for recording, series in parts]
    k = min(total.k for total in totals)
    return movement_of(sums, counts, Histogram.merged((total.folded(k) for total in totals), k), index)


def _buckets(course: Course, magnitudes: bool) -> IntArray:
    return np.abs(course.index) if magnitudes else course.index


def _all_buckets(courses: Sequence[Course], magnitudes: bool) -> IntArray:
    indices = [np.unique(_buckets(course, magnitudes)) for course in courses]
    return np.unique(np.concatenate(indices)) if indices else np.empty(0, dtype=np.int64)


def _counts(courses: Sequence[Course], index: IntArray, magnitudes: bool, length: int, cells: int) -> IntArray:
    """Values by cell and bucket; a cell is so many intervals, and what is left over belongs to the last one."""
    counts = np.zeros(cells * index.size, dtype=np.int64)
    for course in courses:
        row = np.minimum(np.repeat(course.at, np.diff(course.offsets)) // length, cells - 1)
        column = np.searchsorted(index, _buckets(course, magnitudes))
        counts += np.bincount(row * index.size + column, course.bucket_count, counts.size).astype(np.int64)
    return counts.reshape(cells, index.size)
