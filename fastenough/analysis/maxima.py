# SPDX-License-Identifier: GPL-2.0-or-later
"""Maxima over time, of one CPU: what estimates of the tail and change points are made of.

The unit is the interval: what lies in one counts as one disturbance, of which the greatest value is known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.model import Series
from fastenough.recording import Recording

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Maxima:
    """The greatest value of each of equal stretches of time, in ns, in the order of time.

    ``step_ns``: values are whole multiples of it, each standing for what lies within half a step of it.
    ``begin_wall_ns``: when each stretch began.
    """

    values_ns: FloatArray
    begin_wall_ns: IntArray
    step_ns: float
    stretch_ns: float

    @property
    def duration_ns(self) -> float:
        return self.stretch_ns * self.values_ns.size

    def gathered(self, per_block: int) -> Maxima:
        """Of stretches that are ``per_block`` times as long; what is left over at the end is left out."""
        whole = self.values_ns.size // per_block
        values = self.values_ns[:whole * per_block].reshape(whole, per_block).max(axis=1)
        begins = self.begin_wall_ns[:whole * per_block:per_block]
        return Maxima(values, begins, self.step_ns, self.stretch_ns * per_block)

    def blocks(self, about: int) -> Maxima:
        """Gathered to ``about`` stretches, or up to twice as many."""
        return self.gathered(max(1, self.values_ns.size // about))


def maxima_of(parts: Sequence[tuple[Recording, Series]]) -> Maxima:
    """Of series of one CPU, from one or several runs: their intervals, but for those shorter than half the usual."""
    found = [_of_run(run, series) for run, series in sorted(parts, key=lambda part: part[0].head.begin.wall_ns)]
    values, begins, lengths = (np.concatenate(each) for each in zip(*found, strict=True))
    usual_ns = float(np.median(lengths)) if lengths.size else 1.0
    whole = lengths > usual_ns / 2
    unit_ns = max(series.unit_ns for _, series in parts)
    step = int(np.gcd.reduce(values[whole])) if whole.any() else 1
    return Maxima(values[whole] * unit_ns, begins[whole], max(step, 1) * unit_ns, usual_ns)


def _of_run(run: Recording, series: Series) -> tuple[IntArray, IntArray, IntArray]:
    """Maxima in the series' unit, begins and lengths of the intervals that hold values."""
    course = run.timeline.courses[series.id]
    there = course.count > 0
    greatest = np.maximum(abs(course.minimum), abs(course.maximum)) if series.two_sided else course.maximum
    at = course.at[there]
    begins, ends = run.timeline.begin_mono_ns[at], run.timeline.end_mono_ns[at]
    return greatest[there], run.timeline.begin_wall_ns[at], ends - begins
