# SPDX-License-Identifier: GPL-2.0-or-later
"""The maxima of an hour: twelve five-minute ones of each CPU, as bytes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fastenough.history.packed import packed, unpacked
from fastenough.history.rows import NOTHING
from fastenough.history.schema import HOUR_S, STEP_S

Integers = NDArray[np.int64]
STEPS = HOUR_S // STEP_S
_SHIFT = 2
"""CPUs and maxima are kept so much greater: -1 is nothing, and -2 no CPU."""


class HourMaxima:
    """``of_cpu``: by CPU (12,), NOTHING where nothing was measured."""

    def __init__(self, of_cpu: Mapping[int, Integers] | None = None) -> None:
        self.of_cpu = dict(of_cpu or {})

    @classmethod
    def of(cls, data: bytes) -> HourMaxima:
        rows = unpacked(data).reshape(-1, STEPS + 1) - _SHIFT
        return cls({int(row[0]): row[1:] for row in rows})

    @property
    def data(self) -> bytes:
        rows = [np.concatenate(([cpu], self.of_cpu[cpu])) for cpu in sorted(self.of_cpu)]
        return packed(np.concatenate(rows) + _SHIFT)

    @property
    def worst_ns(self) -> int:
        return max(int(maxima.max()) for maxima in self.of_cpu.values())

    def lay(self, cpu: int, offset_s: int, max_ns: int) -> None:
        """Note the maximum of the five minutes that begin so long after the hour."""
        maxima = self.of_cpu.setdefault(cpu, np.full(STEPS, NOTHING, dtype=np.int64))
        maxima[offset_s // STEP_S] = max(int(maxima[offset_s // STEP_S]), max_ns)
