# SPDX-License-Identifier: GPL-2.0-or-later
"""For how long periods were due in a recording, and which of them it must account for."""

from __future__ import annotations

from collections.abc import Iterator

from fastenough.analysis.merged import variant
from fastenough.model import Series
from fastenough.recording import Histogram, Recording

START_AND_END_NS = 100_000_000
"""How long the threads may take to begin and to end, in which no period is due."""


def lateness_ns(recording: Recording, act: Series) -> float:
    """How long periods that count from the last act were drawn out by it: each begins when the last act came."""
    return sum(recording.totals[series.id].sum * series.unit_ns for series in recording.series
               if series.relative and not series.corrected and variant(series) == variant(act))


def time_of_periods_ns(recording: Recording) -> int:
    """How long periods were due at least: threads end when they were to, and what is left is written after that."""
    planned_ns = recording.head.parameters.get("duration_ns")
    whole_ns = recording.duration_ns - START_AND_END_NS
    if type(planned_ns) is not int or not 0 < planned_ns < recording.duration_ns:
        return whole_ns
    return min(whole_ns, max(planned_ns, recording.duration_ns - recording.head.interval_ns))


def absent_before_the_end(recording: Recording, series: Series, due_ns: float) -> float:
    """What need not be accounted for lies in the last interval: the periods that those before it lack."""
    if due_ns >= recording.duration_ns - START_AND_END_NS or series.period_ns is None or len(recording.timeline) < 2:
        return 0.0
    timeline, course = recording.timeline, recording.timeline.courses[series.id]
    length_ns = int(timeline.end_mono_ns[-2] - timeline.begin_mono_ns[0]) - START_AND_END_NS
    length_ns -= round(max(0.0, lateness_ns(recording, series)))
    held = int(course.count[course.at < len(timeline) - 1].sum()) + recording.lost(series.id)
    return length_ns / series.period_ns - held - 2


def acts_not_corrected(recording: Recording, corrected: Series) -> int:
    """How many values of the plain series are not in the corrected one of the same act, which holds them all, and more.

    Series are parted from their warm-up one after the other, so that one act may count in the plain one only.
    """
    held, absent = recording.totals[corrected.id], 0
    for series in recording.series:
        if not series.corrected and variant(series) == variant(corrected):
            acts = recording.totals[series.id]
            k = min(acts.k, held.k)
            there = dict(_counts(held.folded(k)))
            absent += sum(max(0, count - there.get(index, 0)) for index, count in _counts(acts.folded(k)))
    return max(0, absent - int("warm_up_ns" in recording.head.parameters))


def _counts(values: Histogram) -> Iterator[tuple[int, int]]:
    return zip(values.index.tolist(), values.count.tolist(), strict=True)
