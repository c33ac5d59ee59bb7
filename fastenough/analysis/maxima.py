# SPDX-License-Identifier: GPL-2.0-or-later
"""Maxima over time of one CPU, the input of tail estimates and change points.

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

_NEARLY = 0.1
"""Stretches whose lengths differ by no more than this share count as equal."""
_MOST_TIMES = 5
"""Longest stretch, in longest intervals: a whole number of any other interval then nearly fits."""


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

    def merge_stretches(self, per_block: int) -> Maxima:
        """Maxima of stretches that are ``per_block`` times as long; a remainder at the end belongs to the last one."""
        begins = np.arange(max(1, self.values_ns.size // per_block)) * per_block
        if not self.values_ns.size:
            return replace(self, stretch_ns=self.stretch_ns * per_block)
        return Maxima(
            np.maximum.reduceat(self.values_ns, begins),
            self.begin_wall_ns[begins],
            self.step_ns,
            self.stretch_ns * per_block,
        )

    def blocks(self, about: int) -> Maxima:
        """Maxima of ``about`` stretches, or of up to twice as many."""
        return self.merge_stretches(max(1, self.values_ns.size // about))


def maxima_of(parts: Sequence[tuple[Recording, Series]]) -> Maxima:
    """Maxima of the intervals of series of one CPU, from one or several runs, in the order of time.

    An interval shorter than half the run's usual one belongs to the one before it, or at the begin of a run to the one
    after it.  Where the intervals of runs differ in length, those of each run are gathered to stretches of one length:
    in a longer stretch the maximum is greater.
    """
    maxima_per_run = [
        _run_maxima(run, series) for run, series in sorted(parts, key=lambda part: part[0].head.begin.wall_ns)
    ]
    nonempty = [arrays for arrays in maxima_per_run if arrays[0].size]
    usual_ns = [float(np.median(lengths)) for _, _, lengths in nonempty]
    stretch_ns = _common(usual_ns)
    joined = [
        _joined(*arrays, usual, max(1, round(stretch_ns / usual)) if usual else 1)
        for arrays, usual in zip(nonempty, usual_ns, strict=True)
    ]
    if not joined:
        return Maxima(np.empty(0), np.empty(0, dtype=np.int64), 1.0, stretch_ns)
    values, begins = (np.concatenate(arrays) for arrays in zip(*joined, strict=True))
    unit_ns = max(series.unit_ns for _, series in parts)
    step = int(np.gcd.reduce(values))
    return Maxima(values * unit_ns, begins, max(step, 1) * unit_ns, stretch_ns)


def _common(usual_ns: Sequence[float]) -> float:
    """The least multiple of the longest interval that is nearly a whole number of intervals of each run."""
    longest_ns = max(usual_ns, default=1.0)
    stretches = (times * longest_ns for times in range(1, _MOST_TIMES))
    return next(
        (
            stretch
            for stretch in stretches
            if all(abs(round(stretch / usual) * usual - stretch) <= _NEARLY * stretch for usual in usual_ns if usual)
        ),
        _MOST_TIMES * longest_ns,
    )


def _joined(
    values: IntArray, begins: IntArray, lengths: IntArray, usual_ns: float, per_stretch: int
) -> tuple[IntArray, IntArray]:
    """Maxima and begins of stretches of a run that hold so many whole intervals, or all of it where it has fewer; what
    is left over at the end belongs to the last one."""
    first = np.flatnonzero(lengths > usual_ns / 2)
    first = np.concatenate([[0], first[1:]]) if first.size else np.zeros(1, dtype=np.int64)
    first = first[np.arange(max(1, first.size // per_stretch)) * per_stretch]
    return np.maximum.reduceat(values, first), begins[first]


def _run_maxima(run: Recording, series: Series) -> tuple[IntArray, IntArray, IntArray]:
    """Maxima in the series' unit, begins and lengths of the intervals that hold values."""
    course = run.timeline.courses[series.id]
    filled = course.count > 0
    greatest = np.maximum(abs(course.minimum), abs(course.maximum)) if series.two_sided else course.maximum
    places = course.at[filled]
    begins, ends = run.timeline.begin_mono_ns[places], run.timeline.end_mono_ns[places]
    return greatest[filled], run.timeline.begin_wall_ns[places], ends - begins
