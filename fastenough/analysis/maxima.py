# SPDX-License-Identifier: GPL-2.0-or-later
"""Maxima over time, of one CPU: what estimates of the tail and change points are made of.

The unit is the interval: what lies in one counts as one disturbance, of which the greatest value is known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
        """Of stretches that are ``per_block`` times as long; what is left over at the end belongs to the last one."""
        begins = np.arange(max(1, self.values_ns.size // per_block)) * per_block
        if not self.values_ns.size:
            return replace(self, stretch_ns=self.stretch_ns * per_block)
        return Maxima(np.maximum.reduceat(self.values_ns, begins), self.begin_wall_ns[begins], self.step_ns,
                      self.stretch_ns * per_block)

    def blocks(self, about: int) -> Maxima:
        """Gathered to ``about`` stretches, or up to twice as many."""
        return self.gathered(max(1, self.values_ns.size // about))


def maxima_of(parts: Sequence[tuple[Recording, Series]]) -> Maxima:
    """Of series of one CPU, from one or several runs: their intervals, in the order of time.

    An interval shorter than half the usual belongs to the one before it, or at the begin of a run to the one after it.
    """
    found = [_of_run(run, series) for run, series in sorted(parts, key=lambda part: part[0].head.begin.wall_ns)]
    lengths = np.concatenate([each for _, _, each in found])
    usual_ns = float(np.median(lengths)) if lengths.size else 1.0
    joined = [_joined(values, begins, length > usual_ns / 2) for values, begins, length in found if values.size]
    if not joined:
        return Maxima(np.empty(0), np.empty(0, dtype=np.int64), 1.0, usual_ns)
    values, begins = (np.concatenate(each) for each in zip(*joined, strict=True))
    unit_ns = max(series.unit_ns for _, series in parts)
    step = int(np.gcd.reduce(values))
    return Maxima(values * unit_ns, begins, max(step, 1) * unit_ns, usual_ns)


def _joined(values: IntArray, begins: IntArray, whole: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Maxima and begins of stretches of a run that hold one whole interval each, or all of it where none is whole."""
    first = np.flatnonzero(whole)
    first = np.concatenate([[0], first[1:]]) if first.size else np.zeros(1, dtype=np.int64)
    return np.maximum.reduceat(values, first), begins[first]


def _of_run(run: Recording, series: Series) -> tuple[IntArray, IntArray, IntArray]:
    """Maxima in the series' unit, begins and lengths of the intervals that hold values."""
    course = run.timeline.courses[series.id]
    there = course.count > 0
    greatest = np.maximum(abs(course.minimum), abs(course.maximum)) if series.two_sided else course.maximum
    at = course.at[there]
    begins, ends = run.timeline.begin_mono_ns[at], run.timeline.end_mono_ns[at]
    return greatest[there], run.timeline.begin_wall_ns[at], ends - begins
