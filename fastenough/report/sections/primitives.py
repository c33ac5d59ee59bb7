# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost of synchronisation and communication, with table 4 and figure 5 of the RTLinux case study."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastenough.analysis import words
from fastenough.reference import find_reference
from fastenough.report import plot
from fastenough.report.context import Context, RunGroup, SeriesKind, distinctions, numbered
from fastenough.report.document import Column, Picture, ReportTable, Section

_PRIMITIVES = (
    "switch",
    "mutex",
    "mutex-contended",
    "mutex-pi",
    "inversion",
    "spinlock",
    "semaphore",
    "condvar",
    "futex",
    "eventfd",
    "signal",
    "mqueue",
    "barrier",
    "fifo-message",
)
"""In the order of the table."""

_ON_ANOTHER_CPU = frozenset({"smt", "core", "socket"})


def _published(probe: str, kind: SeriesKind) -> tuple[float | None, ...]:
    """Published minimum, mean and maximum of the same operation on one CPU."""
    labels = kind.series.labels
    if labels.get("placement") in _ON_ANOTHER_CPU or labels.get("inheritance") == "no":
        return (None, None, None)
    return next(
        ((figure.minimum_ns, figure.mean_ns, figure.maximum_ns) for figure in find_reference("rtlinux").of(probe)),
        (None, None, None),
    )


def _measured(group: RunGroup, kind: SeriesKind) -> str:
    """The series name with its labels and relevant parameters."""
    head = group.recordings[0].head.parameters
    labels = [f"{name} {value}" for name, value in kind.series.labels.items()]
    if "channel" in head:
        labels.append(head["channel"])
    if "medium_ns" in head:
        labels.append(f"medium {words.duration(head['medium_ns'])}")
    return ", ".join([kind.series.name, *labels])


def _rows(members: list[tuple[RunGroup, SeriesKind]]) -> list[list[Any]]:
    """A row for each member, whose name tells groups of one load apart."""
    names = [_measured(*member) for member in members]
    keyed = [
        (group, (group.recordings[0].head.probe, group.load, name))
        for (group, _), name in zip(members, names, strict=True)
    ]
    titles = [", ".join(filter(None, parts)) for parts in zip(names, distinctions(keyed), strict=True)]
    return [_row(*member, title) for member, title in zip(members, titles, strict=True)]


def _row(group: RunGroup, kind: SeriesKind, title: str) -> list[Any]:
    probe = group.recordings[0].head.probe
    measures = kind.measures
    mean_ns = None if measures.mean_ns is None else math.ceil(measures.mean_ns)
    return [
        probe,
        title,
        group.load,
        measures.n,
        measures.minimum_ns,
        mean_ns,
        measures.quantile(0.5).value_ns,
        measures.quantile(0.999).value_ns,
        measures.maximum_ns,
        *_published(probe, kind),
    ]


def _ns(value: float | None) -> str:
    return "–" if value is None else f"{math.ceil(value):,}"


def _ns_down(value: float | None) -> str:
    return "–" if value is None else f"{math.floor(value):,}"


def _table(members: list[tuple[RunGroup, SeriesKind]]) -> ReportTable:
    columns = (
        Column("primitive", numeric=False),
        Column("measured", numeric=False),
        Column("load", numeric=False),
        Column("n"),
        Column("min", _ns_down),
        *(Column(title, _ns) for title in ("average", "median", "99.9 %", "max")),
        Column("RTLinux min", _ns_down),
        *(Column(title, _ns) for title in ("RTLinux average", "RTLinux max")),
    )
    return ReportTable(
        "primitives",
        "Times in ns, with those published for RTLinux",
        columns,
        _rows(members),
        note="The last three columns are published figures of another system and only show the scale: RTLinux "
        "3.2-pre3, kernel threads, 300 MHz Celeron. There is none for the spinlock, because the system had one "
        f"CPU.{_cost(members)}",
    )


def _cost(members: list[tuple[RunGroup, SeriesKind]]) -> str:
    readings = [group.recordings[0].head.cost_ns.get("clock_read_ns") for group, _ in members]
    costs = sorted(cost for cost in readings if cost is not None)
    return f" Reading the clock costs {costs[len(costs) // 2]:.0f} ns here; each time includes it." if costs else ""


def _events(members: list[tuple[RunGroup, SeriesKind]]) -> ReportTable:
    """The start and end event of each time."""
    rows = list(
        dict.fromkeys(
            (group.recordings[0].head.probe, kind.series.name, kind.series.from_event, kind.series.to_event)
            for group, kind in members
        )
    )
    return ReportTable(
        "primitives-events",
        "The start and end event of each time",
        tuple(Column(title, numeric=False) for title in ("primitive", "series", "from", "to")),
        rows,
    )


def _pictures(members: list[tuple[RunGroup, SeriesKind]]) -> list[Picture]:
    names = numbered([f"condvar-{kind.series.labels.get('placement', 'same')}" for _, kind in members])
    titles = distinctions([(group, _measured(group, kind)) for group, kind in members])
    return [_over_time(*member, *texts) for member, *texts in zip(members, names, titles, strict=True)]


def _over_time(group: RunGroup, kind: SeriesKind, name: str, distinction: str) -> Picture:
    """Minimum and maximum of each interval, as in figure 5."""
    times_s, lows_us, highs_us = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    for recording in group.recordings:
        timeline = recording.timeline
        if not len(timeline):
            continue
        course = timeline.courses[kind.series.id]
        taken = course.count > 0
        times_s.append((timeline.end_mono_ns[course.at[taken]] - timeline.begin_mono_ns[0]) / 1e9)
        lows_us.append(course.minimum[taken] / 1000)
        highs_us.append(course.maximum[taken] / 1000)
    at_s, low_us, high_us = np.concatenate(times_s), np.concatenate(lows_us), np.concatenate(highs_us)
    title = ", ".join(filter(None, ("condition variable", _measured(group, kind), distinction)))
    figure, axes = plot.new_figure(title)
    axes.plot(at_s, high_us, "o-", color=plot.COLOURS[1], label="maximum of each interval")
    axes.plot(at_s, low_us, "o-", color=plot.COLOURS[0], label="minimum of each interval")
    axes.set_yscale("log")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("signal to wake [µs]")
    plot.plain_log_axis(axes.yaxis)
    plot.legend_below(figure, axes.get_legend_handles_labels()[0])
    return plot.picture(
        figure,
        name,
        f"{title}: {group.label(kind.all_cpus)}.",
        (("end_s", "min_us", "max_us"), list(zip(at_s, low_us, high_us, strict=True))),
    )


def section(context: Context) -> Section | None:
    members = [
        (group, kind)
        for probe in _PRIMITIVES
        for group in context.groups
        if group.recordings[0].head.probe == probe
        for kind in group.kinds
        if kind.all_cpus.n
    ]
    if not members:
        return None
    pictures = _pictures(
        [
            (group, kind)
            for group, kind in members
            if group.recordings[0].head.probe == "condvar" and group.recordings[0].aggregate.intervals
        ]
    )
    return Section(
        "primitives",
        "Primitives",
        "Cost of a context switch, a lock, a wake-up and a message. A maximum is a lower bound of the worst case.",
        [_table(members), *pictures, _events(members)],
    )
