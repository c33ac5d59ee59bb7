# SPDX-License-Identifier: GPL-2.0-or-later
"""The maxima of an hour: twelve five-minute ones of each CPU, as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fastenough.history.packed import numbers_in, packed, unpacked
from fastenough.history.rows import NOTHING
from fastenough.history.schema import HOUR_S, STEP_S

Integers = NDArray[np.int64]
STEPS = HOUR_S // STEP_S
_SHIFT = 2
"""CPUs and maxima are kept so much greater: -1 is nothing, and -2 no CPU."""


class HourMaxima:
    """``of_cpu``: by CPU twelve, NOTHING where nothing was measured."""

    def __init__(self, of_cpu: Mapping[int, list[int]] | None = None) -> None:
        self.of_cpu = dict(of_cpu or {})

    @classmethod
    def of(cls, data: bytes) -> HourMaxima:
        _, cpus, maxima = cls.unpacked([data])
        return cls(dict(zip(cpus.tolist(), maxima.tolist(), strict=True)))

    @staticmethod
    def unpacked(blobs: Sequence[bytes]) -> tuple[Integers, Integers, Integers]:
        """Of many hours at once, a row for each hour and CPU: which hour (N,), which CPU (N,), and maxima (N, 12)."""
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

    def lay(self, cpu: int, offset_s: int, max_ns: int) -> None:
        """Note the maximum of the five minutes that begin so long after the hour."""
        maxima = self.of_cpu.setdefault(cpu, [NOTHING] * STEPS)
        maxima[offset_s // STEP_S] = max(maxima[offset_s // STEP_S], max_ns)
