# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency by kernel stage: the station that causes the tail, and the worst wake-ups station by station."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fastenough.analysis import words
from fastenough.analysis.stations import Tail, tail_of, worst_wakeups
from fastenough.recording.wakeups import NOISE, STATIONS, SUMS, Wakeup
from fastenough.report import plot
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Column, Data, Picture, Section, Table, Text

MOST_DRAWN = 10
_MOST_LOADS = 12
_SAID_CHARS = 150
_LEAST_SHARE = 1e-5
_HATCHES = ("", "///", "\\\\\\", "...", "xxx", "++", "oo")
_ORDER = (*STATIONS, *reversed(SUMS))


def named(name: str) -> str:
    """A station for people: its two events."""
    return name.replace("-", " ")


def _worst_cpu(kind: Kind) -> int | None:
    worst = max(kind.per_cpu, key=lambda values: values.maximum_ns or 0.0)
    return worst.cpus[0] if worst.cpus else None


def kinds_of(group: Group, names: tuple[str, ...]) -> list[Kind]:
    """The kinds with these names that have values, in this order."""
    there = [kind for kind in group.kinds if kind.series.name in names and kind.all_cpus.n]
    return sorted(there, key=lambda kind: names.index(kind.series.name))


def tail_sentence(group: Group, tail: Tail | None) -> str:
    """One sentence: the station that causes the tail of a load."""
    if tail is not None:
        who, times = tail.blamed[0]
        n = len(tail.worst)
        of_them = f"of the {n} worst recorded wake-ups" if n > 1 else "of 1 recorded wake-up"
        return (
            f"{group.title}: the tail comes from {named(tail.station)} ({STATIONS[tail.station]}). It is the longest "
            f"station in {tail.longest_in} {of_them} and takes {words.percent(float(f'{tail.share:.2g}'))} of their "
            f"time. Most frequent cause: {who}, in {times} of {n}."
        )
    kinds = kinds_of(group, tuple(STATIONS))
    if not kinds:
        return f"{group.title}: no wake-up of a monitored task was recorded."
    worst = max(kinds, key=lambda kind: kind.all_cpus.maximum_ns or 0.0)
    return (
        f"{group.title}: no wake-up was recorded station by station. The station with the greatest maximum is "
        f"{named(worst.series.name)}, {words.latency(worst.all_cpus.maximum_ns)}."
    )


def _table(groups: tuple[Group, ...]) -> Table:
    us = words.microseconds
    columns = (
        Column("load", numeric=False),
        Column("station", numeric=False),
        Column("n"),
        Column("median [µs]", us),
        Column("99.9 % [µs]", us),
        Column("maximum [µs]", us),
        Column("on CPU", lambda cpu: "–" if cpu is None else str(cpu)),
    )
    rows = [
        (
            group.title.removeprefix("load "),
            named(kind.series.name),
            kind.measures.n,
            kind.measures.quantile(0.5).value_ns,
            kind.measures.quantile(0.999).value_ns,
            kind.measures.maximum_ns,
            _worst_cpu(kind),
        )
        for group in groups
        for kind in kinds_of(group, _ORDER)
    ]
    return Table(
        "stations",
        "Each station, all CPUs combined",
        columns,
        rows,
        note="The maxima of the stations belong to different wake-ups and do not add up.",
    )


def summary(context: Context) -> Table | None:
    """A row per monitored load, for the summary of runs with monitor data only."""
    rows = []
    for entry in context.ways:
        tail, measures = tail_of(worst_wakeups(entry.group.recordings)), entry.kind.measures
        rows.append(
            (
                entry.name.removeprefix("load "),
                measures.n,
                measures.quantile(0.999).value_ns,
                measures.maximum_ns,
                "–" if tail is None else named(tail.station),
                "–" if tail is None else tail.blamed[0][0],
            )
        )
    if not rows:
        return None
    us = words.microseconds
    columns = (
        Column("load", numeric=False),
        Column("wake-ups"),
        Column("99.9 % [µs]", us),
        Column("maximum [µs]", us),
        Column("tail from station", numeric=False),
        Column("most frequent cause", numeric=False),
    )
    ways = ", ".join(dict.fromkeys(named(entry.kind.series.name) for entry in context.ways))
    return Table("overview", f"Monitored wake-ups ({ways}), all CPUs combined", columns, rows)


def _share(share: float) -> str:
    return words.percent(float(f"{share:.2g}")) if share >= _LEAST_SHARE else f"below {words.percent(_LEAST_SHARE)}"


def _noise(groups: tuple[Group, ...]) -> Table | None:
    """CPU time taken from tasks, by its source."""
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        for kind in kinds_of(group, tuple(NOISE)):
            values = kind.all_cpus
            cpu_s = values.duration_ns / 1e9 * max(1, len(values.cpus))
            rows.append(
                (
                    group.title.removeprefix("load "),
                    NOISE[kind.series.name],
                    values.n / cpu_s,
                    values.histogram.sum * values.unit_ns / 1e9 / cpu_s,
                    values.maximum_ns,
                    _worst_cpu(kind),
                )
            )
    if not rows:
        return None
    columns = (
        Column("load", numeric=False),
        Column("taken by", numeric=False),
        Column("times per second per CPU", lambda each: f"{each:,.3g}"),
        Column("share of CPU time", _share),
        Column("longest [µs]", words.microseconds),
        Column("on CPU", lambda cpu: "–" if cpu is None else str(cpu)),
    )
    return Table("noise", "CPU time taken from tasks", columns, rows)


def _place(wakeup: Wakeup, group: Group) -> str:
    """CPU and time of a wake-up; for several runs the wall-clock time."""
    cpu = "" if wakeup.cpu is None else f"CPU {wakeup.cpu}, "
    alone = len(group.recordings) == 1
    return f"{cpu}after {words.since_begin(wakeup.after_ns)}" if alone else f"{cpu}{words.minute(wakeup.at.wall_ns)}"


def _cut(text: str) -> str:
    return text if len(text) <= _SAID_CHARS else f"{text[: _SAID_CHARS - 2]} …"


def _draw(group: Group, drawn: list[Wakeup]) -> Figure:
    """One bar per wake-up with its stations in order, and the cause above."""
    figure, axes = plot.new_figure(
        f"Worst wake-ups by station: {group.title}", (plot.WIDE_IN[0], 1.4 + 0.44 * len(drawn))
    )
    used = [name for name in STATIONS if any(name in wakeup.parts for wakeup in drawn)]
    look = {name: (plot.COLOURS[place], _HATCHES[place]) for place, name in enumerate(used)}
    for row, wakeup in enumerate(drawn):
        left_us = 0.0
        for name, ns in wakeup.parts.items():
            colour, hatch = look[name]
            axes.barh(
                row + 0.18,
                ns / 1000,
                left=left_us,
                height=0.42,
                color=colour,
                hatch=hatch,
                edgecolor="#ffffff",
                linewidth=0.6,
            )
            left_us += ns / 1000
        said = _cut(f"{_place(wakeup, group)}: {words.latency(wakeup.delay_ns)}; {wakeup.said or 'cause unknown'}")
        axes.annotate(
            said.replace("$", r"\$"), (0.0, row - 0.05), xycoords=("axes fraction", "data"), fontsize=9, va="bottom"
        )
    axes.set_yticks([])
    axes.set_ylim(len(drawn) - 0.45, -0.6)
    axes.set_xlim(0, max(wakeup.delay_ns for wakeup in drawn) / 1000 * 1.02)
    axes.xaxis.set_major_formatter(plot.plain)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("time since the wake-up was due [µs]")
    plot.legend_below(
        figure,
        [Patch(facecolor=look[name][0], hatch=look[name][1], edgecolor="#ffffff", label=named(name)) for name in used],
        columns=3,
    )
    return figure


def _data(drawn: list[Wakeup]) -> Data:
    """One row per wake-up."""
    header = ["run", "after_s", "cpu", "delay_ns", *(f"{name} [ns]" for name in STATIONS), "blamed", "said"]
    return header, [
        [
            wakeup.run_id,
            wakeup.after_ns / 1e9,
            wakeup.cpu,
            wakeup.delay_ns,
            *(wakeup.parts.get(name) for name in STATIONS),
            wakeup.blamed,
            wakeup.said,
        ]
        for wakeup in drawn
    ]


def breakdown(group: Group, name: str, most: int = MOST_DRAWN) -> Picture | None:
    """The worst wake-ups of one load as stacked bars; None if none was recorded station by station."""
    found = [wakeup for wakeup in worst_wakeups(group.recordings) if wakeup.longest]
    if not found:
        return None
    drawn = found[:most]
    return plot.picture(
        _draw(group, drawn),
        name,
        f"The {len(drawn)} worst of {words.counted(len(found), 'wake-up')} "
        f"recorded station by station, {group.title}, {group.instrument}.",
        _data(drawn),
        wide=True,
    )


def section(context: Context) -> Section | None:
    groups = context.watched
    if not groups:
        return None
    sentences = [tail_sentence(group, tail_of(worst_wakeups(group.recordings))) for group in groups]
    pictures = [
        picture
        for number, group in enumerate(groups[:_MOST_LOADS], start=1)
        if (picture := breakdown(group, f"stations-{number}")) is not None
    ]
    noise, table = _noise(groups), _table(groups)
    parts: list[Text | Picture | Table] = [Text("Source of the tail", sentences), *pictures]
    parts += [each for each in (table if table.rows else None, noise) if each is not None]
    return Section(
        "stations",
        "Latency by kernel stage",
        "The monitor follows each wake-up of a real-time task through the kernel. It records new maxima, and "
        "wake-ups above the threshold if there is one, individually. It explains latency; the verdict does not "
        "use it.",
        parts,
    )
