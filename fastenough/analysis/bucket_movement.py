# SPDX-License-Identifier: GPL-2.0-or-later
"""Movement of values within their buckets over time, from the exact sums of intervals.

If one bucket holds nearly all values, its counts show no dependence between them, but their sum does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastenough.recording.histogram import Histogram
from fastenough.recording.timeline import folded

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LEAST_PIECES = 8.0
"""Least number of pieces of time from which the size of clusters can be estimated at a scale."""


@dataclass(frozen=True, eq=False)
class Movement:
    """Values within their buckets over time.

    ``moved``: for each run, the sum of the values of each cell, minus the sum that the means of their buckets predict.
    ``variance``: for each run, the variance of ``moved`` from each bucket if values are independent (cells x buckets).
    """

    moved: tuple[FloatArray, ...]
    variance: tuple[FloatArray, ...]

    def with_last_bucket(self) -> Movement:
        """The same with one more bucket, which has no values."""
        return replace(self, variance=tuple(np.pad(variance, ((0, 0), (0, 1))) for variance in self.variance))

    def within(self, bucket: int) -> list[FloatArray]:
        """``moved`` of each run in standard errors; a cell has less weight if other buckets may have caused it."""
        return [
            moved * np.sqrt(variance[:, bucket]) / _positive(variance.sum(axis=1))
            for moved, variance in zip(self.moved, self.variance, strict=True)
        ]

    def size(self, bucket: int) -> float | None:
        """Size of the clusters of values in a bucket, the greatest over all scales; None if other buckets hide it.

        The size is the factor by which the variance of their sum exceeds that of independent values.
        """
        moved = self._all_moved
        here, every = self._all_variance[:, bucket], self._all_variance.sum(axis=1)
        own = _excess(moved, here, every)
        if own is None:
            return None
        size, length = own[0], 2
        while (excess := _excess(*(_pieces(values, length) for values in (moved, here, every)))) is not None:
            at_scale, error = excess
            size = max(size, at_scale * (1.0 + 2.0 * error) if at_scale > own[0] * (1.0 + error) else at_scale)
            length *= 2
        return size

    @cached_property
    def _all_moved(self) -> FloatArray:
        return np.concatenate(self.moved)

    @cached_property
    def _all_variance(self) -> FloatArray:
        return np.concatenate(self.variance)


def _positive(values: FloatArray) -> FloatArray:
    return np.maximum(values, np.finfo(np.float64).tiny)


def _pieces(values: FloatArray, length: int) -> FloatArray:
    return np.asarray(values[: values.size // length * length].reshape(-1, length).sum(axis=1))


def _excess(moved: FloatArray, here: FloatArray, every: FloatArray) -> tuple[float, float] | None:
    """Least-squares estimate, at least 1, of the factor by which the variance of one bucket is greater than ``here``,
    and its relative standard error.  ``every``: variance of ``moved`` from all buckets if values are independent.  None
    if the bucket has too small a share of it."""
    share = here / _positive(every)
    squares = float(share @ share)
    if squares < _LEAST_PIECES:
        return None
    excess = float(share @ (moved * moved / _positive(every) - 1.0)) / squares
    return max(1.0, 1.0 + excess), (2.0 / (squares - 1.0)) ** 0.5


def movement_of(sums: Sequence[FloatArray], counts: Sequence[IntArray], values: Histogram, index: IntArray) -> Movement:
    """Movement in runs, from the ``sums`` of their cells, ``counts`` (cells x buckets of ``index``), and all ``values``
    in finer buckets.

    Each run is taken about its own mean, so that differences between runs do not count.
    """
    place = np.searchsorted(index, folded(values.index, values.k))
    low, high = values.lowest().astype(np.float64), values.highest().astype(np.float64)
    middle, count = (low + high) / 2.0, values.count.astype(np.float64)
    total = np.maximum(np.bincount(place, count, index.size), 1.0)
    mean = np.bincount(place, count * middle, index.size) / total
    square = count * ((middle - mean[place]) ** 2 + (high - low + 1.0) ** 2 / 12.0)
    spread = np.bincount(place, square, index.size) / total
    return of_buckets(sums, counts, mean, spread)


def of_buckets(
    sums: Sequence[FloatArray], counts: Sequence[IntArray], mean: FloatArray, variance: FloatArray
) -> Movement:
    """Movement in runs, from the mean and the variance of the values of each bucket."""
    moved = [values - count @ mean for values, count in zip(sums, counts, strict=True)]
    n = [count.sum(axis=1) for count in counts]
    centred = [values - cells * (values.sum() / max(1, cells.sum())) for values, cells in zip(moved, n, strict=True)]
    return Movement(tuple(centred), tuple(count * variance for count in counts))
