# SPDX-License-Identifier: GPL-2.0-or-later
"""Packed maxima: the five-minute maxima of an hour, and rings of the newest hourly and daily maxima of a board.

A ring stores the maximum of unit u (hours or days since 1970) at place u modulo its size.  Units older than the newest
minus the size are dropped, in whatever order values arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.history.histograms import numbers_in, packed, unpacked
from fastenough.history.results import NOTHING
from fastenough.history.schema import HOUR_S, STEP_S

Integers = NDArray[np.int64]
STEPS = HOUR_S // STEP_S
_SHIFT = 2
"""Offset of stored CPUs and maxima: -1 is nothing, and -2 no CPU."""


class HourMaxima:
    """``of_cpu``: twelve maxima by CPU, NOTHING without data."""

    def __init__(self, of_cpu: Mapping[int, list[int]] | None = None) -> None:
        self.of_cpu = dict(of_cpu or {})

    @classmethod
    def of(cls, data: bytes) -> HourMaxima:
        _, cpus, maxima = cls.unpacked([data])
        return cls(dict(zip(cpus.tolist(), maxima.tolist(), strict=True)))

    @staticmethod
    def unpacked(blobs: Sequence[bytes]) -> tuple[Integers, Integers, Integers]:
        """Rows of several hours, one for each hour and CPU: index of the hour (N,), CPU (N,), and maxima (N, 12)."""
        rows = unpacked(b"".join(blobs)).reshape(-1, STEPS + 1) - _SHIFT
        which = np.repeat(np.arange(len(blobs)), numbers_in(blobs) // (STEPS + 1))
        return which, rows[:, 0], rows[:, 1:]

    @property
    def data(self) -> bytes:
        rows = [[cpu, *self.of_cpu[cpu]] for cpu in sorted(self.of_cpu)]
        return packed(np.array(rows, dtype=np.int64).ravel() + _SHIFT)

    @property
    def worst_ns(self) -> int:
        return max(max(maxima) for maxima in self.of_cpu.values())

    def worst_within(self, first: int, last: int) -> int:
        """Maximum of the five-minute windows ``first`` to ``last - 1``, NOTHING without data."""
        return max((value for maxima in self.of_cpu.values() for value in maxima[first:last]), default=NOTHING)

    def lay(self, cpu: int, offset_s: int, max_ns: int) -> None:
        """Store the maximum of the five minutes that begin at this offset in the hour."""
        maxima = self.of_cpu.setdefault(cpu, [NOTHING] * STEPS)
        maxima[offset_s // STEP_S] = max(maxima[offset_s // STEP_S], max_ns)


HOURS = 50
"""More than two days: a new maximum is current for 24 hours, and compared with everything before."""
DAYS = 33
"""More than the 30 displayed days and the days that a new maximum must exceed."""


@dataclass(frozen=True)
class MaximaRing:
    """``values`` (size,); ``newest``: the newest unit, NOTHING for an empty ring."""

    values: Integers
    newest: int

    @classmethod
    def of(cls, data: bytes, newest: int) -> MaximaRing:
        return cls(np.frombuffer(data, dtype="<i8").astype(np.int64), newest)

    @classmethod
    def empty(cls, size: int) -> MaximaRing:
        return cls(np.full(size, NOTHING, dtype=np.int64), NOTHING)

    @property
    def data(self) -> bytes:
        return self.values.astype("<i8").tobytes()

    @property
    def units(self) -> Integers:
        """Units that the ring can hold."""
        return np.arange(max(0, self.newest - self.values.size + 1), self.newest + 1)

    def laid(self, units: Integers, maxima: Integers) -> MaximaRing:
        """The ring with additional maxima (N,) of units (N,), which may repeat."""
        size = self.values.size
        newest = max(self.newest, int(units.max(initial=NOTHING)))
        values = self.values.copy()
        if newest > self.newest:
            values[np.arange(max(self.newest, newest - size) + 1, newest + 1) % size] = NOTHING
        recent = units > newest - size
        np.maximum.at(values, units[recent] % size, maxima[recent])
        return MaximaRing(values, newest)

    def at(self, units: Integers) -> Integers:
        """The maxima of these units, NOTHING without data or if dropped."""
        size = self.values.size
        known = (units > self.newest - size) & (units <= self.newest)
        return np.where(known, self.values[units % size], NOTHING)
