# SPDX-License-Identifier: GPL-2.0-or-later
"""Many histograms at once, each under a key, added up by key: numpy costs more for a call than for 60 buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.history.packed import added, packed_histograms, unpacked_histograms

Integers = NDArray[np.int64]
Key = tuple[int, ...]


@dataclass(frozen=True)
class Pile:
    """``keys``, and of each bucket (N,): which key it belongs to, its index, and its count; ascending by both."""

    keys: tuple[Key, ...]
    which: Integers
    index: Integers
    count: Integers

    @classmethod
    def of(cls, keys: Sequence[Key], which: Integers, index: Integers, count: Integers) -> Pile:
        """``keys`` (of every histogram, and each as often as it has some)."""
        distinct = tuple(dict.fromkeys(keys))
        place = {key: number for number, key in enumerate(distinct)}
        places = np.array([place[key] for key in keys], dtype=np.int64)
        return cls(distinct, *added(places[which] if which.size else which, index, count))

    @classmethod
    def unpacked(cls, entries: Iterable[tuple[Key, bytes]]) -> Pile:
        held = list(entries)
        index, count, which = unpacked_histograms([blob for _, blob in held])
        return cls.of([key for key, _ in held], which, index, count)

    def by(self, others: Mapping[Key, Key]) -> Pile:
        """The same values under other keys."""
        return Pile.of([others[key] for key in self.keys], self.which, self.index, self.count)

    def plus(self, other: Pile) -> Pile:
        return Pile.of(
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
