# SPDX-License-Identifier: GPL-2.0-or-later
"""Rises and runs above a limit, counted one value at a time as docs/format.md says; slow, and by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from fastenough.recording.head import LimitCount
from fastenough.recording.rises import Rises


@lru_cache(maxsize=1 << 16)
def coarse(value: int, k: int, two_sided: bool) -> int:
    """The bucket of a value on the coarse scale."""
    magnitude = abs(value) if two_sided else max(value, 0)
    shift = max(magnitude.bit_length() - 1 - k, 0)
    return (shift << k) + (magnitude >> shift)


class Order:
    """What a series knows of the order of its values; a gap before some of them makes it forget."""

    def __init__(self, k: int, limit_ns: int, two_sided: bool = False) -> None:
        self.k, self.limit_ns, self.two_sided = k, limit_ns, two_sided
        self.before = self.run = 0

    def interval(self, values: Iterable[int], gap: bool = False) -> tuple[Rises, LimitCount]:
        """Of the values of one interval."""
        rises: Counter[int] = Counter()
        exceeded = runs = squares = longest = 0
        if gap:
            self.before = self.run = 0
        for value in map(int, values):
            this = coarse(value, self.k, self.two_sided)
            if this > self.before:
                rises[self.before + 1] += 1
                rises[this + 1] -= 1
            self.before = this
            self.run = self.run + 1 if (abs(value) if self.two_sided else value) > self.limit_ns else 0
            if self.run:
                exceeded, runs, squares = exceeded + 1, runs + (self.run == 1), squares + 2 * self.run - 1
                longest = max(longest, self.run)
        entries = [(edge, delta) for edge, delta in sorted(rises.items()) if delta]
        return Rises.of(entries, self.k), LimitCount(self.limit_ns, exceeded, runs, squares, longest)
