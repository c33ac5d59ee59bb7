# SPDX-License-Identifier: GPL-2.0-or-later
"""The newest maxima of a board in a fixed number of bytes: one for each of so many hours, or days.

A ring keeps the maximum of unit u (an hour or a day, counted from 1970) at place u modulo its size.  What is older than
the newest less the size is not in it any more, whatever the order in which values came.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.history.rows import NOTHING

Integers = NDArray[np.int64]

HOURS = 50
"""More than two days: what is a new maximum is told for 24 hours, against all that was before."""
DAYS = 33
"""More than the 30 days that are shown and those that a new maximum must exceed."""


@dataclass(frozen=True)
class Ring:
    """``values`` (size,); ``newest``: the unit that came last, NOTHING where none came."""

    values: Integers
    newest: int

    @classmethod
    def of(cls, data: bytes, newest: int) -> Ring:
        return cls(np.frombuffer(data, dtype="<i8").astype(np.int64), newest)

    @classmethod
    def empty(cls, size: int) -> Ring:
        return cls(np.full(size, NOTHING, dtype=np.int64), NOTHING)

    @property
    def data(self) -> bytes:
        return self.values.astype("<i8").tobytes()

    @property
    def units(self) -> Integers:
        """Those that it can tell of."""
        return np.arange(max(0, self.newest - self.values.size + 1), self.newest + 1)

    def laid(self, units: Integers, maxima: Integers) -> Ring:
        """With these maxima (N,) of units (N,) as well, each of which may occur again."""
        size = self.values.size
        newest = max(self.newest, int(units.max(initial=NOTHING)))
        values = self.values.copy()
        if newest > self.newest:
            values[np.arange(max(self.newest, newest - size) + 1, newest + 1) % size] = NOTHING
        kept = units > newest - size
        np.maximum.at(values, units[kept] % size, maxima[kept])
        return Ring(values, newest)

    def at(self, units: Integers) -> Integers:
        """The maxima of these units, NOTHING where nothing was measured or it is not known any more."""
        size = self.values.size
        known = (units > self.newest - size) & (units <= self.newest)
        return np.where(known, self.values[units % size], NOTHING)
