# SPDX-License-Identifier: GPL-2.0-or-later
"""The number of periods that were due in a recording, and those it must account for."""

from __future__ import annotations

import numpy as np

from fastenough.analysis.merged import variant
from fastenough.model import Series
from fastenough.recording import Recording
from fastenough.recording.histogram import add_sparse

EDGE_PERIODS = 2
"""Periods at the begin and the end that are due or not by a rounding of the clock."""
_START_NS = 100_000_000
"""Time for the start of threads, or for the reading of an instrument, in which no edge need be seen."""
_TASK_START_NS = 60_000_000_000
"""Maximum time for which an instrument waits for the start of the board's task."""
_CLOCK_SHARE = 0.01
"""Maximum error of an instrument's clock, relative to that of the bench."""
_FIRST_INTERVALS = 3
"""Intervals that tell the time before the first edge from a stall in progress at the end of one of them."""


def accounted(recording: Recording, series: Series) -> int:
    """Periods that a series accounts for: each has a value, was lost or, where no value stands for it, was missed."""
    missed = 0 if series.corrected else recording.missed(series.id)
    return recording.totals[series.id].total + recording.lost(series.id) + missed


def lateness_ns(recording: Recording, act: Series) -> float:
    """How much longer periods were than stated, all together.

    Periods that count from the last act are drawn out by it: each begins when the last act came.  Deviations of a
    period are by how much each was longer; that of a missed period is not lateness, since it is counted.
    """
    if act.two_sided:
        return recording.totals[act.id].sum * act.unit_ns - recording.missed(act.id) * (act.period_ns or 0)
    return sum(
        recording.totals[series.id].sum * series.unit_ns
        for series in recording.series
        if series.relative and not series.corrected and variant(series) == variant(act)
    )


def caught_up(recording: Recording, series: Series) -> float:
    """Missed periods of an instrument's series whose edges came in a later interval, in which the board made up for a
    stall: they have a value, too."""
    if not series.two_sided or not series.period_ns:
        return 0.0
    return min(float(recording.missed(series.id)), max(0.0, -lateness_ns(recording, series) / series.period_ns))


def _parameter(recording: Recording, name: str) -> int:
    """A number among the parameters, 0 where there is none."""
    value = recording.head.parameters.get(name)
    return value if type(value) is int and value > 0 else 0


def _begins_after_ns(recording: Recording, act: Series) -> int:
    """How much later than the first thread's the grid of this one begins, as it was asked to."""
    threads = [series.id for series in recording.series if (series.corrected, series.name) == (act.corrected, act.name)]
    return _parameter(recording, "offset_ns") * threads.index(act.id)


def _time_of_loops_ns(recording: Recording, act: Series) -> int:
    """How long a thread acted that ended after its --loops, where another thread lasted to the end; 0 for others."""
    period_ns, loops = act.period_ns or 0, _parameter(recording, "loops")
    acted = any(
        recording.totals[series.id].total >= loops
        for series in recording.series
        if not series.corrected and variant(series) == variant(act)
    )
    lasted = any(
        series.period_ns and (accounted(recording, series) + EDGE_PERIODS) * series.period_ns >= recording.duration_ns
        for series in recording.series
        if series.corrected == act.corrected
    )
    return accounted(recording, act) * period_ns if loops and acted and lasted else 0


def time_of_periods_ns(recording: Recording, series: Series) -> float:
    """How long periods of a series were due, from the stated begin on.

    Threads act until the run was to end; the rest of its last interval is spent on writing.
    """
    planned_ns, due_ns = _parameter(recording, "duration_ns"), recording.duration_ns
    if 0 < planned_ns < due_ns:
        due_ns = max(planned_ns, due_ns - recording.head.interval_ns)
    due_ns = min(due_ns, _time_of_loops_ns(recording, series) or due_ns)
    return due_ns - _begins_after_ns(recording, series) - max(0.0, lateness_ns(recording, series))


def absent_before_the_end(recording: Recording, series: Series, due_ns: float) -> float:
    """The periods that the intervals before the last one lack; a stall between the two is held by the last one."""
    if due_ns >= recording.duration_ns or series.period_ns is None or len(recording.timeline) < 2:
        return 0.0
    timeline, course = recording.timeline, recording.timeline.courses[series.id]
    before = course.at < len(timeline) - 1
    stall_ns = max(0, int(course.maximum[~before].max(initial=0))) * series.unit_ns
    length_ns = int(timeline.end_mono_ns[-2] - timeline.begin_mono_ns[0]) - stall_ns
    length_ns -= _begins_after_ns(recording, series) + max(0.0, lateness_ns(recording, series))
    accounted_for = int(course.count[before].sum()) + recording.lost(series.id)
    accounted_for += 0 if series.corrected else int(course.missed[before].sum())
    return length_ns / series.period_ns - accounted_for - EDGE_PERIODS


def unseen_at_start_ns(recording: Recording, series: Series) -> float:
    """How long an instrument saw no edge from the begin on, if that is longer than allowed; else 0.

    It counts nothing before the first edge.  A board that the bench does not control toggles from the begin on, another
    one from the start of its task on.
    """
    timeline, course = recording.timeline, recording.timeline.courses[series.id]
    period_ns = series.period_ns or 0
    started_ns = recording.end.counters.get("task_started_ns") if recording.end is not None else None
    first = int(np.argmax(course.count > 0)) if course.count.any() else 0
    within = slice(first, first + _FIRST_INTERVALS)
    seen_ns = np.cumsum((course.count + course.lost) * period_ns + course.sum * series.unit_ns)[within]
    unseen_ns = (timeline.end_mono_ns[course.at] - timeline.begin_mono_ns[0])[within] - seen_ns
    allowed_ns = _START_NS + min(max(0, started_ns or 0), _TASK_START_NS) + EDGE_PERIODS * period_ns
    late = unseen_ns > allowed_ns + _CLOCK_SHARE * seen_ns
    return float(unseen_ns.min()) if late.size and late.all() else 0.0


def acts_not_corrected(recording: Recording, corrected: Series) -> int:
    """How many values of the plain series are not in the corrected one of the same act, which holds them all, and more.

    Series are parted from their warm-up one after the other, so that one act may count in the plain one only.
    """
    corrected_total, absent = recording.totals[corrected.id], 0
    for series in recording.series:
        if not series.corrected and variant(series) == variant(corrected):
            k = min(recording.totals[series.id].k, corrected_total.k)
            acts, held = recording.totals[series.id].folded(k), corrected_total.folded(k)
            _, excess = add_sparse([acts.index, held.index], [acts.count, -held.count])
            absent += int(excess[excess > 0].sum())
    return max(0, absent - int("warm_up_ns" in recording.head.parameters))


LATE_SHARE = 0.95
"""Share of a period that an act which missed one must at least have been late: two clocks may differ in rate."""


def lacks_late_act(recording: Recording, corrected: Series) -> bool:
    """Whether a corrected series has missed periods, but no act that began a period late or more.

    At the end of a warm-up the late act may be dropped, and what it missed be counted.
    """
    if not corrected.period_ns or "warm_up_ns" in recording.head.parameters:
        return False
    latest = recording.totals[corrected.id].maximum
    late_ns = 0 if latest is None else latest * corrected.unit_ns
    return recording.missed(corrected.id) > 0 and late_ns < LATE_SHARE * corrected.period_ns
