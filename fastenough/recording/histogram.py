# SPDX-License-Identifier: GPL-2.0-or-later
"""The log-linear histogram, mirror of ``format/fe_hist.h``.

Buckets carry a signed index: ``i >= 0`` is bucket ``i`` of the magnitudes 0 and up, ``-i`` is bucket
``i`` of the mirrored half that holds negative values.  Ascending index is thus ascending value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

IndexArray = NDArray[np.int64]
CountArray = NDArray[np.int64]
ValueArray = NDArray[np.int64]


def _top_bit(magnitude: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Position of the highest set bit of each magnitude (0 for 0).

    It is one too high where 53 set bits and more round up to a power of two: bucket_index is the same for both.
    """
    _, exponent = np.frexp(magnitude.astype(np.float64))
    top: NDArray[np.uint64] = np.maximum(exponent - 1, 0).astype(np.uint64)
    return top


def bucket_index(values: Sequence[int] | ValueArray, k: int) -> IndexArray:
    """Signed bucket index of each value (any shape of int64)."""
    array = np.asarray(values, dtype=np.int64)
    magnitude = np.where(array < 0, np.uint64(0) - array.astype(np.uint64), array.astype(np.uint64))
    top = _top_bit(magnitude)
    shift = np.where(top > k, top - np.uint64(k), np.uint64(0)).astype(np.uint64)
    index = ((shift << np.uint64(k)) + (magnitude >> shift)).astype(np.int64)
    return np.where(array < 0, -index, index)


def bucket_of(value: int, k: int) -> int:
    """Signed bucket index of one value, a hundred times as fast as with an array."""
    magnitude = abs(value)
    shift = max(0, magnitude.bit_length() - 1 - k)
    index = (shift << k) + (magnitude >> shift)
    return -index if value < 0 else index


def bucket_lowest(index: Sequence[int] | IndexArray, k: int) -> ValueArray:
    """Smallest value of each bucket."""
    array = np.asarray(index, dtype=np.int64)
    magnitude = np.abs(array)
    lower, width = _lower_and_width(magnitude, k)
    return np.where(array < 0, -(lower + width - 1), lower)


def bucket_highest(index: Sequence[int] | IndexArray, k: int) -> ValueArray:
    """Greatest value of each bucket."""
    array = np.asarray(index, dtype=np.int64)
    magnitude = np.abs(array)
    lower, width = _lower_and_width(magnitude, k)
    return np.where(array < 0, -lower, lower + width - 1)


def _lower_and_width(magnitude_index: IndexArray, k: int) -> tuple[ValueArray, ValueArray]:
    octave = magnitude_index >> k
    shift = np.maximum(octave - 1, 0)
    low_bits = magnitude_index & ((1 << k) - 1)
    mantissa = np.where(octave > 0, low_bits + (1 << k), low_bits)
    return mantissa << shift, np.int64(1) << shift


_FITS_INT64 = 2**63
"""Below it, sums of squares are exact in 64 bits; Python's integers take several times as long."""
_AT_ONCE = 64
"""Number of histograms added in one step: memory does not grow with the total number."""
_MOST_DENSE = 1 << 20
"""Buckets; those of k = 10 are an eighth of it."""


_ROUNDING = 1e-9
"""Relative rounding error of sums of doubles; the width of a bucket is a thousandth."""


def sums_fault(histogram: Histogram) -> str | None:
    """Why the sums do not match the buckets; None if they do."""
    if not histogram.total:
        return None
    count = histogram.count.astype(np.float64)
    low, high = histogram.lowest().astype(np.float64), histogram.highest().astype(np.float64)
    allowed = _ROUNDING * float(np.maximum(np.abs(low), np.abs(high)) @ count) + 1.0
    if not float(low @ count) - allowed <= histogram.sum <= float(high @ count) + allowed:
        return "the sum cannot be that of values in these buckets"
    least, most = np.minimum(low * low, high * high) @ count, np.maximum(low * low, high * high) @ count
    if not least * (1 - _ROUNDING) - 1.0 <= histogram.sum_sq <= most * (1 + _ROUNDING) + 1.0:
        return "the sum of squares cannot be that of values in these buckets"
    return None


def add_sparse(index: Sequence[IndexArray], count: Sequence[CountArray]) -> tuple[IndexArray, CountArray]:
    """Add sparse histograms of one k, at least one, some at a time.

    ``index[n]`` and ``count[n]`` are int64 arrays of one length, in any order; the result ascends, without
    buckets that add up to 0.  Time is linear in the number of entries.  Sums above 2^63 - 1 overflow: bound them
    before.
    """
    if len(index) > _AT_ONCE:
        parts = [
            add_sparse(index[first : first + _AT_ONCE], count[first : first + _AT_ONCE])
            for first in range(0, len(index), _AT_ONCE)
        ]
        return add_sparse([part[0] for part in parts], [part[1] for part in parts])
    indices, counts = np.concatenate(index), np.concatenate(count)
    if not indices.size:
        return indices, counts
    lowest = int(indices.min())
    if int(indices.max()) - lowest >= _MOST_DENSE:
        buckets, place = np.unique(indices, return_inverse=True)
    else:
        place = indices - lowest
        buckets = np.arange(lowest, int(indices.max()) + 1, dtype=np.int64)
    dense = np.zeros(buckets.size, dtype=np.int64)
    np.add.at(dense, place, counts)
    filled = np.flatnonzero(dense)
    return buckets[filled], dense[filled]


def _widest(buckets: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Wide buckets of several histograms; for a bucket that is wide in several, the least value."""
    least: dict[int, int] = {}
    for index, lowest in buckets:
        least[index] = min(lowest, least.get(index, lowest))
    return tuple(sorted(least.items()))


def _coarser(index: IndexArray, k: int, coarser_k: int) -> IndexArray:
    """Bucket of a coarser k that contains each bucket of ``k``."""
    return bucket_index(np.where(index < 0, -bucket_lowest(-index, k), bucket_lowest(index, k)), coarser_k)


@dataclass(frozen=True)
class Histogram:
    """Counts per bucket, ascending by value, with exact statistics beside them.

    ``index`` and ``count`` are int64 arrays of one length holding non-empty buckets only; ``minimum`` and
    ``maximum`` are None when the histogram is empty.  Values are integers in the series' unit.

    ``wide``: (bucket, least value) of the buckets, ascending, whose values may be below the bucket itself: an
    imported histogram has wider buckets, and its overflow is only known to be between its end and the maximum.  Sums
    of squares are then unknown, and sums are known only if the source states a mean.
    """

    k: int
    index: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    count: CountArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    minimum: int | None = None
    maximum: int | None = None
    sum: int = 0
    sum_sq: int = 0
    wide: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_values(cls, values: Sequence[int] | ValueArray, k: int) -> Histogram:
        """The histogram of integer values (any one-dimensional sequence)."""
        array = np.asarray(values, dtype=np.int64)
        if array.size == 0:
            return cls(k)
        index, count = np.unique(bucket_index(array, k), return_counts=True)
        least, greatest = int(array.min()), int(array.max())
        exact = array if array.size * max(-least, greatest) ** 2 < _FITS_INT64 else array.astype(object)
        return cls(k, index, count.astype(np.int64), least, greatest, int(exact.sum()), int((exact * exact).sum()))

    @classmethod
    def merged(cls, parts: Iterable[Histogram], k: int) -> Histogram:
        """The exact sum of histograms of one k; raises ValueError where the k differ."""
        filled = [part for part in parts if part.total > 0]
        if any(part.k != k for part in filled):
            raise ValueError(f"cannot add histograms of different resolution (k = {k} and another)")
        if not filled:
            return cls(k)
        index, count = add_sparse([part.index for part in filled], [part.count for part in filled])
        minima = [part.minimum for part in filled if part.minimum is not None]
        maxima = [part.maximum for part in filled if part.maximum is not None]
        return cls(
            k,
            index,
            count,
            min(minima),
            max(maxima),
            sum(part.sum for part in filled),
            sum(part.sum_sq for part in filled),
            _widest(bucket for part in filled for bucket in part.wide),
        )

    def folded(self, k: int) -> Histogram:
        """The same values in the wider buckets of a coarser ``k``, exactly; itself if it already is that coarse."""
        if k >= self.k:
            return self
        index, count = add_sparse([_coarser(self.index, self.k, k)], [self.count])
        return replace(self, k=k, index=index, count=count, wide=self._folded_wide(k))

    def _folded_wide(self, k: int) -> tuple[tuple[int, int], ...]:
        """The wide buckets of a coarser ``k``; each also contains the values of narrow buckets, so all of its range."""
        if not self.wide:
            return ()
        index, least = np.array(self.wide, dtype=np.int64).T
        index = _coarser(index, self.k, k)
        least = np.minimum(least, bucket_lowest(index, k))
        return _widest(zip(index.tolist(), least.tolist(), strict=True))

    @property
    def total(self) -> int:
        """Number of values."""
        return int(self.count.sum())

    @property
    def mean(self) -> float | None:
        """Exact mean, None if empty."""
        return self.sum / self.total if self.total else None

    @property
    def standard_deviation(self) -> float | None:
        """Sample standard deviation from the exact sums, None below two values or with wide buckets."""
        n = self.total
        if n < 2 or self.wide:
            return None
        return math.sqrt((n * self.sum_sq - self.sum * self.sum) / (n * (n - 1)))

    def lowest(self) -> ValueArray:
        """Smallest value each bucket can hold, narrowed by the exact minimum."""
        lowest = bucket_lowest(self.index, self.k)
        if self.wide:
            index, least = np.array(self.wide, dtype=np.int64).T
            lowest[np.searchsorted(self.index, index)] = least
        return np.maximum(lowest, -(2**63) if self.minimum is None else self.minimum)

    def highest(self) -> ValueArray:
        """Greatest value each bucket can hold, narrowed by the exact maximum."""
        return np.minimum(bucket_highest(self.index, self.k), 2**63 - 1 if self.maximum is None else self.maximum)

    def value_at_rank(self, rank: int) -> int:
        """Upper edge of the bucket that holds the ``rank``-th smallest value (1-based): never understates."""
        if not 1 <= rank <= self.total:
            raise ValueError(f"rank {rank} is outside 1 to {self.total}")
        position = int(np.searchsorted(np.cumsum(self.count), rank))
        return int(self.highest()[position])

    def count_above(self, limit: int) -> int:
        """Values that may exceed ``limit``: a bucket that contains the limit counts as a whole (on the safe side)."""
        return int(self.count[self.highest() > limit].sum())
