# SPDX-License-Identifier: GPL-2.0-or-later
"""Text lines on a run in progress: what is measured, progress, maximum with its age, outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastenough import words
from fastenough.cli.output import readable
from fastenough.jobs.live import LiveRecording, SeriesStatus, greatest
from fastenough.model import Role, Series
from fastenough.recording import End, Event, Head
from fastenough.recording.wakeups import Wakeup, is_monitor, longest_way, wakeups


def kernel_of(profile: Any) -> str:
    """Kernel release and preemption model of a profile."""
    kernel = profile.get("kernel") if isinstance(profile, dict) else None
    if not isinstance(kernel, dict):
        return "kernel unknown"
    model = kernel.get("preemption")
    return f"kernel {kernel.get('release')} ({model if model == 'preempt-rt' else f'preemption {model}'})"


_NOT_ONLY_REAL_TIME = ("any", "other")
"""Values of the monitor's parameter policy."""


def heading(head: Head) -> str:
    """What is measured: probe, period, load, kernel, board, run."""
    period_ns = next((series.period_ns for series in head.series if series.period_ns), None)
    every = f" every {words.duration(period_ns)}" if period_ns else ""
    load = f"load {head.load.name}" if head.load else "load unknown"
    board = f" on {head.board}" if head.board else ""
    return (
        f"{head.probe}{every}{_task_filter(head)} by {head.implementation}, {load}, {kernel_of(head.profile)}{board}; "
        f"run {head.run_id}"
    )


def _task_filter(head: Head) -> str:
    """The tasks that a monitor watches, if they are not all real-time tasks."""
    if not is_monitor(head):
        return ""
    parts = [f"{name} {head.parameters[name]}" for name in ("pid", "comm", "cgroup") if head.parameters.get(name)]
    if head.parameters.get("policy") in _NOT_ONLY_REAL_TIME:
        parts.append("including tasks without real-time policy (SCHED_OTHER)")
    return f" of {', '.join(parts)}" if parts else ""


def clock(ns: float) -> str:
    """A duration to the second: ``48 s``, ``4 min 58 s``, ``2 h 05 min``."""
    seconds = round(max(0.0, ns) / 1e9)
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def how_far(following: LiveRecording) -> str:
    """Measured and planned time."""
    measured, planned = following.measured_ns, following.planned_ns
    if planned is None:
        return f"measured {clock(measured)}, no end set"
    return f"measured {clock(measured)} of {clock(planned)}, {left(planned - measured)}"


def left(ns: float) -> str:
    """Time left, in words."""
    return f"{clock(ns)} left"


def age(ns: float | None) -> str:
    """How long ago something happened."""
    if ns is None:
        return "–"
    return "just now" if ns < 1e9 else f"{clock(ns)} ago"


def place(series: Series, alone: bool) -> str:
    """The name of a series; only its CPU and labels if all series have the same name."""
    parts = [] if alone else [series.name]
    parts += [] if series.cpu is None else [f"CPU {series.cpu}"]
    labels = [f"{name}={value}" for name, value in series.labels.items() if value != series.name]
    return " ".join([*parts, *labels]) or series.name


def _alone(head: Head | None) -> bool:
    """Whether the name of the series is omitted: a monitor has several paths, a probe has not."""
    return head is None or not is_monitor(head)


def losses(statuses: Sequence[SeriesStatus]) -> str:
    """How many samples were lost, if any."""
    lost = sum(status.lost for status in statuses)
    return f"{words.counted(lost, 'sample')} lost" if lost else ""


def main_series(head: Head, n: Mapping[int, int]) -> list[Series]:
    """The main series, given the number of values of each: those that a limit is judged by; of a monitor those of the
    longest path that has values; else all."""
    if is_monitor(head):
        way = longest_way(head, n)
        return [series for series in head.series if series.name == way and n.get(series.id)]
    there = [series for series in head.series if series.id in n]
    return [series for series in there if series.role is Role.VERDICT] or there


def newest_wakeups(head: Head | None, events: Iterable[Event]) -> list[Wakeup]:
    """The wake-ups of events that name a cause, newest first."""
    return [] if head is None else sorted(wakeups(head, events), key=lambda wakeup: -wakeup.at.mono_ns)


def wakeup_line(wakeup: Wakeup) -> str:
    """One wake-up: time, CPU, delay, longest station, cause."""
    cpu = "" if wakeup.cpu is None else f" CPU {wakeup.cpu}"
    station = f", most of it {wakeup.longest} ({readable(wakeup.parts[wakeup.longest])})" if wakeup.longest else ""
    after = words.since_begin(wakeup.after_ns, 1)
    return f"after {after}{cpu}: {readable(wakeup.delay_ns)}{station}: {wakeup.culprit_text or '–'}"


def plain_line(following: LiveRecording) -> str:
    """Progress and maximum of the main series on one line."""
    statuses = _main_statuses(following)
    if not statuses:
        return f"{how_far(following)}: no sample yet"
    missed = sum(status.missed for status in statuses)
    worst = max(statuses, key=lambda status: status.maximum_ns or 0)
    latest = [status.latest_ns for status in statuses if status.latest_ns is not None]
    where = place(worst.series, alone=_alone(following.head))
    return (
        f"{how_far(following)}: maximum {readable(worst.maximum_ns)} ({where}, {age(worst.since_maximum_ns)}), "
        f"{f'last interval {readable(max(latest))}' if latest else 'no sample in the last interval'}; "
        f"{words.counted(sum(status.n for status in statuses), 'sample')}, {missed:,} missed"
        + (f", {losses(statuses)}" if losses(statuses) else "")
    )


def _main_statuses(following: LiveRecording) -> list[SeriesStatus]:
    statuses = {status.series.id: status for status in following.statuses()}
    counts = {number: status.n for number, status in statuses.items()}
    return [] if following.head is None else [statuses[series.id] for series in main_series(following.head, counts)]


def final_lines(head: Head, end: End, in_store: bool) -> Iterator[str]:
    """Lines on how the run ended."""
    main = main_series(head, {number: series_end.taken for number, series_end in end.series.items()})
    ends = [end.series[series.id] for series in main]
    worst = [
        (value * series.unit_ns, series)
        for series, series_end in zip(main, ends, strict=True)
        if (value := greatest(series, series_end.minimum, series_end.maximum)) is not None
    ]
    duration = words.duration(end.at.mono_ns - head.begin.mono_ns)
    lost, missed = sum(series_end.lost for series_end in ends), sum(series_end.missed for series_end in ends)
    text = f"{end.outcome} after {duration}: {words.counted(sum(series_end.taken for series_end in ends), 'sample')}"
    if worst:
        value_ns, series = max(worst, key=lambda pair: pair[0])
        text += f", maximum {readable(value_ns)} ({place(series, alone=_alone(head))})"
    yield f"{text}, {lost:,} lost, {missed:,} missed"
    limits = [series_end.limit for series_end in ends if series_end.limit is not None]
    if limits:
        yield f"above {words.exact_time(limits[0].ns)}: {sum(limit.exceeded for limit in limits):,}"
    yield from (f"  {reason}" for reason in end.reasons)
    if in_store:
        yield f"see: fastenough show {head.run_id}"
