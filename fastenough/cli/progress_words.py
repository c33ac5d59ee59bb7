# SPDX-License-Identifier: GPL-2.0-or-later
"""A run under way in words: what is measured, how far it is, its worst case with its age, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastenough import words
from fastenough.cli.output import readable
from fastenough.jobs.following import Following, Standing, greatest
from fastenough.model import Role, Series
from fastenough.recording import End, Event, Head
from fastenough.recording.wakeups import Wakeup, is_monitor, longest_way, wakeups


def kernel_of(profile: Any) -> str:
    """Release and preemption model out of a profile, or why they are not there."""
    kernel = profile.get("kernel") if isinstance(profile, dict) else None
    if not isinstance(kernel, dict):
        return "kernel not stated"
    model = kernel.get("preemption")
    return f"kernel {kernel.get('release')} ({model if model == 'preempt-rt' else f'preemption {model}'})"


_NOT_ONLY_REAL_TIME = ("any", "other")
"""Values of the monitor's parameter policy."""


def heading(head: Head) -> str:
    """What is measured: act, period, load, kernel, board, run."""
    period_ns = next((series.period_ns for series in head.series if series.period_ns), None)
    every = f" every {words.duration(period_ns)}" if period_ns else ""
    load = f"load {head.load.name}" if head.load else "load not stated"
    board = f" on {head.board}" if head.board else ""
    return (
        f"{head.probe}{every}{_watched(head)} by {head.implementation}, {load}, {kernel_of(head.profile)}{board}; "
        f"run {head.run_id}"
    )


def _watched(head: Head) -> str:
    """Whose wake-ups a monitor counts, where they are not those of all real-time tasks."""
    if not is_monitor(head):
        return ""
    parts = [f"{name} {head.parameters[name]}" for name in ("pid", "comm", "cgroup") if head.parameters.get(name)]
    if head.parameters.get("policy") in _NOT_ONLY_REAL_TIME:
        parts.append("not only real-time tasks (SCHED_OTHER)")
    return f" of {', '.join(parts)}" if parts else ""


def clock(ns: float) -> str:
    """A time that passes, to the second: ``48 s``, ``4 min 58 s``, ``2 h 05 min``."""
    seconds = round(max(0.0, ns) / 1e9)
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def how_far(following: Following) -> str:
    """How long it has measured, and how long it will."""
    measured, planned = following.measured_ns, following.planned_ns
    if planned is None:
        return f"measured {clock(measured)}, until it is stopped"
    return f"measured {clock(measured)} of {clock(planned)}, {left(planned - measured)}"


def left(ns: float) -> str:
    """Time left, in words."""
    return f"{clock(ns)} left"


def age(ns: float | None) -> str:
    """How long ago something was seen."""
    if ns is None:
        return "–"
    return "just now" if ns < 1e9 else f"{clock(ns)} ago"


def place(series: Series, alone: bool) -> str:
    """Which series this is; by its CPU and labels only, where all have one name."""
    parts = [] if alone else [series.name]
    parts += [] if series.cpu is None else [f"CPU {series.cpu}"]
    labels = [f"{name}={value}" for name, value in series.labels.items() if value != series.name]
    return " ".join([*parts, *labels]) or series.name


def _alone(head: Head | None) -> bool:
    """Whether what was measured goes without saying; of the ways that a monitor follows, one was chosen."""
    return head is None or not is_monitor(head)


def losses(standings: Sequence[Standing]) -> str:
    """How many samples were lost, if any."""
    lost = sum(standing.lost for standing in standings)
    return f"{words.counted(lost, 'sample')} lost" if lost else ""


def telling(head: Head, n: Mapping[int, int]) -> list[Series]:
    """The series that stand for the whole, given how many values each has: those that a limit is judged by, of a
    monitor those of the longest way that was seen, else all."""
    if is_monitor(head):
        way = longest_way(head, n)
        return [series for series in head.series if series.name == way and n.get(series.id)]
    there = [series for series in head.series if series.id in n]
    return [series for series in there if series.role is Role.VERDICT] or there


def newest_wakeups(head: Head | None, events: Iterable[Event]) -> list[Wakeup]:
    """The wake-ups that events with a culprit tell, the newest first."""
    return [] if head is None else sorted(wakeups(head, events), key=lambda wakeup: -wakeup.at.mono_ns)


def wakeup_line(wakeup: Wakeup) -> str:
    """One wake-up: when, where, how long, at which station, and whom it waited for."""
    cpu = "" if wakeup.cpu is None else f" CPU {wakeup.cpu}"
    station = f", most of it {wakeup.longest} ({readable(wakeup.parts[wakeup.longest])})" if wakeup.longest else ""
    after = words.since_begin(wakeup.after_ns, 1)
    return f"after {after}{cpu}: {readable(wakeup.delay_ns)}{station}: {wakeup.said or '–'}"


def plain_line(following: Following) -> str:
    """The same on one line: the worst of all series that stand for the whole."""
    standings = _telling(following)
    if not standings:
        return f"{how_far(following)}: nothing was seen yet"
    missed = sum(standing.missed for standing in standings)
    worst = max(standings, key=lambda standing: standing.maximum_ns or 0)
    latest = max((standing.latest_ns or 0 for standing in standings), default=0)
    where = place(worst.series, alone=_alone(following.head))
    return (
        f"{how_far(following)}: worst {readable(worst.maximum_ns)} ({where}, {age(worst.since_maximum_ns)}), "
        f"in the last interval {readable(latest)}; "
        f"{words.counted(sum(standing.n for standing in standings), 'sample')}, {missed:,} missed"
        + (f", {losses(standings)}" if losses(standings) else "")
    )


def _telling(following: Following) -> list[Standing]:
    standings = {standing.series.id: standing for standing in following.standings()}
    counts = {number: standing.n for number, standing in standings.items()}
    return [] if following.head is None else [standings[series.id] for series in telling(following.head, counts)]


def final_lines(head: Head, end: End, in_store: bool) -> Iterator[str]:
    """How the run ended, in words."""
    shown = telling(head, {number: said.taken for number, said in end.series.items()})
    ends = [end.series[series.id] for series in shown]
    worst = [
        (value * series.unit_ns, series)
        for series, said in zip(shown, ends, strict=True)
        if (value := greatest(series, said.minimum, said.maximum)) is not None
    ]
    duration = words.duration(end.at.mono_ns - head.begin.mono_ns)
    lost, missed = sum(said.lost for said in ends), sum(said.missed for said in ends)
    text = f"{end.outcome} after {duration}: {words.counted(sum(said.taken for said in ends), 'sample')}"
    if worst:
        value_ns, series = max(worst, key=lambda pair: pair[0])
        text += f", worst {readable(value_ns)} ({place(series, alone=_alone(head))})"
    yield f"{text}, {lost:,} lost, {missed:,} missed"
    limits = [said.limit for said in ends if said.limit is not None]
    if limits:
        yield f"above {words.latency(limits[0].ns)}: {sum(limit.exceeded for limit in limits):,}"
    yield from (f"  {reason}" for reason in end.reasons)
    if in_store:
        yield f"see: fastenough show {head.run_id}"
