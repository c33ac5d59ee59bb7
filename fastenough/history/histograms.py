# SPDX-License-Identifier: GPL-2.0-or-later
"""Packed integers (LEB128) and histograms, singly and in bulk: 60 buckets take about 130 bytes.

A histogram stores for each bucket the distance from the previous one (zigzag: the first may be negative) and its count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def packed(values: Integers) -> bytes:
    """``values`` (N,): not negative."""
    return packed_rows(values, np.array([0, values.size]))[0]


def packed_rows(values: Integers, begins: Integers) -> list[bytes]:
    """Pack each row of an array; ``begins`` (rows + 1,): where each row begins, and the end of the last."""
    rest = values.astype(np.uint64)
    lengths = np.ones(rest.size, dtype=np.int64)
    for bits in range(7, 64, 7):
        lengths += rest >= np.uint64(1) << np.uint64(bits)
    places = np.concatenate(([0], np.cumsum(lengths)))
    out = np.zeros(int(places[-1]), dtype=np.uint8)
    for nth in range(int(lengths.max(initial=0))):
        has = lengths > nth
        part = ((rest[has] >> np.uint64(7 * nth)) & np.uint64(127)).astype(np.uint8)
        part[lengths[has] > nth + 1] |= 128
        out[places[:-1][has] + nth] = part
    whole = out.tobytes()
    edges = places[begins].tolist()
    return [whole[low:high] for low, high in pairwise(edges)]


def unpacked(data: bytes) -> Integers:
    """The inverse of `packed`."""
    octets = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(octets < 128)
    starts = np.concatenate(([0], ends[:-1] + 1)) if ends.size else ends
    lengths = ends - starts + 1
    values = np.zeros(ends.size, dtype=np.uint64)
    for nth in range(int(lengths.max(initial=0))):
        has = lengths > nth
        values[has] |= (octets[starts[has] + nth] & 127).astype(np.uint64) << np.uint64(7 * nth)
    return values.astype(np.int64)


def _zigzag(values: Integers) -> Integers:
    return (values << 1) ^ (values >> 63)


def _unzigzag(values: Integers) -> Integers:
    return (values >> 1) ^ -(values & 1)


def packed_histograms(index: Integers, count: Integers, begins: Integers) -> list[bytes]:
    """Many at once: buckets of all one behind the other, ``begins`` (rows + 1,) as in `packed_rows`."""
    distance = np.diff(index, prepend=0)
    first = begins[:-1][begins[:-1] < begins[1:]]
    distance[first] = index[first]
    values = np.empty(2 * index.size, dtype=np.int64)
    values[0::2], values[1::2] = _zigzag(distance), count
    return packed_rows(values, 2 * begins)


def unpacked_histograms(blobs: Sequence[bytes]) -> tuple[Integers, Integers, Integers]:
    """Buckets (N,), counts (N,), and which of the histograms (N,) each belongs to."""
    values = unpacked(b"".join(blobs))
    sizes = numbers_in(blobs) // 2
    distance, count = _unzigzag(values[0::2]), values[1::2]
    which = np.repeat(np.arange(len(blobs)), sizes)
    running = np.cumsum(distance)
    begins = np.cumsum(sizes) - sizes
    before = np.where(begins > 0, running[np.maximum(begins - 1, 0)], 0) if running.size else begins
    return running - np.repeat(before, sizes), count, which


def numbers_in(blobs: Sequence[bytes]) -> Integers:
    """Count of numbers in each blob, which is the count of bytes that end a number."""
    octets = np.frombuffer(b"".join(blobs), dtype=np.uint8)
    ended = np.concatenate(([0], np.cumsum(octets < 128)))
    edges = np.concatenate(([0], np.cumsum([len(blob) for blob in blobs]))).astype(np.int64)
    return np.diff(ended[edges]).astype(np.int64)


def added(groups: Integers, index: Integers, count: Integers) -> tuple[Integers, Integers, Integers]:
    """Equal buckets of equal groups added up: groups, buckets and counts, ascending by group, then bucket."""
    if not index.size:
        return groups, index, count
    order = np.lexsort((index, groups))
    groups, index, count = groups[order], index[order], count[order]
    begins = np.flatnonzero(np.concatenate(([True], (np.diff(groups) != 0) | (np.diff(index) != 0))))
    return groups[begins], index[begins], np.add.reduceat(count, begins)


Key = tuple[int, ...]


@dataclass(frozen=True)
class HistogramSet:
    """``keys``, and of each bucket (N,): which key it belongs to, its index, and its count; ascending by both."""

    keys: tuple[Key, ...]
    which: Integers
    index: Integers
    count: Integers

    @classmethod
    def of(cls, keys: Sequence[Key], which: Integers, index: Integers, count: Integers) -> HistogramSet:
        """``keys`` (of every histogram, and each as often as it has some)."""
        distinct = tuple(dict.fromkeys(keys))
        place = {key: number for number, key in enumerate(distinct)}
        places = np.array([place[key] for key in keys], dtype=np.int64)
        return cls(distinct, *added(places[which] if which.size else which, index, count))

    @classmethod
    def unpacked(cls, entries: Iterable[tuple[Key, bytes]]) -> HistogramSet:
        held = list(entries)
        index, count, which = unpacked_histograms([blob for _, blob in held])
        return cls.of([key for key, _ in held], which, index, count)

    @classmethod
    def joined(cls, sets: Sequence[HistogramSet]) -> HistogramSet:
        """The histograms of several sets; those with the same key are added."""
        offsets = np.cumsum([0, *(len(each.keys) for each in sets)])
        return cls.of(
            [key for each in sets for key in each.keys],
            np.concatenate([each.which + offset for each, offset in zip(sets, offsets, strict=False)]),
            np.concatenate([each.index for each in sets]),
            np.concatenate([each.count for each in sets]),
        )

    def under(self, prefix: Key) -> HistogramSet:
        """The same histograms, each under its key after a prefix."""
        return replace(self, keys=tuple((*prefix, *key) for key in self.keys))

    def by(self, others: Mapping[Key, Key]) -> HistogramSet:
        """The same values under other keys."""
        return HistogramSet.of([others[key] for key in self.keys], self.which, self.index, self.count)

    def plus(self, other: HistogramSet) -> HistogramSet:
        return HistogramSet.of(
            [*self.keys, *other.keys],
            np.concatenate((self.which, other.which + len(self.keys))),
            np.concatenate((self.index, other.index)),
            np.concatenate((self.count, other.count)),
        )

    def packed(self) -> dict[Key, bytes]:
        begins = np.searchsorted(self.which, np.arange(len(self.keys) + 1))
        return dict(zip(self.keys, packed_histograms(self.index, self.count, begins), strict=True))

    def counts(self) -> dict[Key, int]:
        totals = np.zeros(len(self.keys), dtype=np.int64)
        np.add.at(totals, self.which, self.count)
        return dict(zip(self.keys, totals.tolist(), strict=True))
