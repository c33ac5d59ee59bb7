# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a load did enough all the time: a disk that is full in the middle of a run does not show in its sum."""

from __future__ import annotations

from fastenough.loads.load import Load
from fastenough.loads.proof import Sample, prove

STRETCH_S = 5.0
"""So long a load is watched before it is held against what is expected of it: one that waits for a disk does nothing
for a while."""


class Stretches:
    """Holds each stretch of a run against what is expected of a load; two in succession without it are too many."""

    def __init__(self, load: Load, cpus: int, begin: Sample) -> None:
        self._load, self._cpus = load, cpus
        self._begin_s, self._last = begin.mono_s, begin
        self._weak = False
        self._reason = ""

    def due(self, mono_s: float) -> bool:
        """Whether a look at that time ends a stretch."""
        return mono_s - self._last.mono_s >= STRETCH_S

    def take(self, sample: Sample) -> None:
        """A look that ends a stretch."""
        reasons = prove(self._load.name, self._load.expects, self._cpus, self._last, sample).reasons
        if self._weak and reasons and not self._reason:
            length_s, since_s = sample.mono_s - self._last.mono_s, sample.mono_s - self._begin_s
            self._reason = f"{reasons[0]}, in the {length_s:.0f} s before {since_s:.0f} s"
        self._weak = bool(reasons)
        self._last = sample

    def reasons(self) -> tuple[str, ...]:
        """Why the load did not run all the time; none where it did."""
        return (self._reason,) if self._reason else ()
