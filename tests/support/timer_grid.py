# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold of every recording of a timer on a grid: each due time is an act or missed, in its interval."""

from __future__ import annotations

from itertools import pairwise

from fastenough.recording import Recording


def accounted(recording: Recording) -> list[tuple[float, float]]:
    """At each interval's end: due times that have passed since the start, and those accounted for.  One thread only."""
    (series,) = recording.named("wakeup")
    assert series.period_ns is not None
    begin_ns, held, rows = recording.intervals[0].begin_mono_ns, 0, []
    for interval in recording.intervals:
        held += interval.histograms[series.id].total + interval.missed[series.id]
        rows.append(((interval.end_mono_ns - begin_ns) / series.period_ns, float(held)))
    return rows


def latest_periods(recording: Recording) -> float:
    """The longest delay of the run, in periods: so many due times can be behind at any instant.

    Of the corrected series: a thread that is held up after it has read its clock shows it in the periods it missed."""
    (series,) = recording.named("wakeup_corrected")
    assert series.period_ns is not None
    maximum = recording.totals[series.id].maximum
    assert maximum is not None
    return max(0.0, maximum / series.period_ns)


MOST_PARTED = 0.01
"""Of intervals, at least one: their reporter was displaced just between the flip and the clock's reading beside it."""


def assert_every_period_accounted(recording: Recording) -> None:
    """At the end of every interval but very few, and of the last one, which ends with the thread's last act."""
    (wakeup,), (corrected,) = recording.named("wakeup"), recording.named("wakeup_corrected")
    assert recording.missed(wakeup.id) == recording.missed(corrected.id)
    assert recording.lost(corrected.id) == 0
    assert recording.totals[corrected.id].total == recording.totals[wakeup.id].total + recording.missed(wakeup.id)
    behind = latest_periods(recording) + 2
    rows = accounted(recording)
    off = [f"{held} of {due} due times accounted for" for due, held in rows if not -1 <= due - held <= behind]
    assert len(off) <= max(1.0, MOST_PARTED * len(rows)), off
    due, held = rows[-1]
    assert -1 <= due - held <= behind, f"{held} of {due} due times accounted for in the whole run"


def furthest_off(recording: Recording) -> float:
    """By how many acts, at most, an interval's count differs from its length in periods, but for the very few."""
    behind = [0.0, *(due - held for due, held in accounted(recording))]
    differences = sorted(abs(after - before) for before, after in pairwise(behind))
    few = max(1, int(MOST_PARTED * len(differences)))
    return differences[-1 - 2 * few]
