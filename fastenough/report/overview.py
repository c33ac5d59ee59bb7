# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen: when and where it was measured, one small table and one figure over all loads."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fastenough.analysis import Quantile, words
from fastenough.model import Outcome, Verdict
from fastenough.report import plot
from fastenough.report.context import Context, Entry, Group
from fastenough.report.document import Cell, Column, Picture, Table, plain
from fastenough.report.latency import MOST_NAMED, Scale, latency_data, latency_figure, line_of, lines_by_cpu
from fastenough.report.sections import stations, throughput

_SIZE_IN = (5.8, 4.0)
_MOST_ROWS = 16
"""More are no first screen."""
_NAME_CHARS = 72
"""Of a row's name in one line above it."""
_LEAST_US = 0.01
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Overview:
    """``when`` and ``systems`` are said here and nowhere else on the page; ``identity`` stands on every printed one."""

    when: str
    systems: tuple[str, ...]
    identity: str
    table: Table | None
    figure: Picture | None


def _instant(wall_ns: int) -> datetime:
    return datetime.fromtimestamp(wall_ns / 1e9, UTC)


def _when(context: Context) -> str:
    """From the beginning of the first run to the end of the last, and how many runs there were to be."""
    unfit = sum(recording.outcome is Outcome.NOT_APPLICABLE for recording in context.recordings)
    also = f"; {words.counted(unfit, 'run')} not applicable here" if unfit else ""
    recordings = [recording for group in context.groups for recording in group.recordings]
    if not recordings:
        return f"Nothing was measured{also}"
    begins = [recording.head.begin.wall_ns for recording in recordings]
    runs = f"in {words.counted(len(begins), 'run')}{also}"
    if not all(begins):
        return f"Measured at a time that is not known, {runs}"
    ends = [begin + recording.duration_ns for begin, recording in zip(begins, recordings, strict=True)]
    first, last = _instant(min(begins)), _instant(max(ends))
    until = last.strftime(" to %H:%M" if first.date() == last.date() else " to %Y-%m-%d %H:%M")
    began = f"{first:%Y-%m-%d %H:%M}"
    return f"Measured {began}{until if last - first >= _MINUTE else ''} UTC {runs}"


def _system(group: Group) -> str:
    cpu = (group.recordings[0].head.profile or {}).get("cpu") or {}
    processor = " × ".join(str(cpu[part]) for part in ("count", "model") if cpu.get(part))
    return "; ".join(filter(None, (group.configuration, processor)))


def _systems(groups: Sequence[Group]) -> tuple[str, ...]:
    """What was booted on what, and of all of them together who did it and who took the times."""
    how = [
        ", ".join(dict.fromkeys(said))
        for said in zip(*((group.recordings[0].head.implementation, group.instrument) for group in groups), strict=True)
    ]
    systems = list(dict.fromkeys(_system(group) for group in groups))
    return ("; ".join([*systems, *how]),) if len(systems) < 2 else (*systems, "; ".join(how))


def _identity(context: Context) -> str:
    runs = [recording.run_id for recording in context.recordings]
    if len(runs) < 2:
        return f"run {runs[0]}" if runs else "no run"
    return f"{len(runs)} runs, {runs[0]} to {runs[-1]}"


def _above(context: Context, entry: Entry, several: bool) -> Cell:
    """How many values may lie above the limit; which it is, where there are several."""
    limit_ns = context.limit_ns(entry.group)
    if limit_ns is None:
        return Cell(None, "no limit")
    _, possibly = entry.kind.all_cpus.exceeded(limit_ns)
    return Cell(possibly, plain(possibly), words.latency(limit_ns) if several else "")


def _not_excluded(context: Context, entry: Entry) -> Cell:
    judgment = context.judgment(entry.group)
    if judgment is None or not judgment.bound.n or judgment.verdict is Verdict.BROKEN:
        return Cell(None, "nothing is excluded")
    every_ns = judgment.bound.every_ns
    return Cell(
        judgment.bound.rate,
        f"{int(1 / judgment.bound.rate):,} activations",
        "" if every_ns is None else words.at_least(every_ns),
    )


def _quantile(quantile: Quantile) -> Cell:
    if quantile.at_least_ns is not None:
        return Cell(None, f"≥ {words.microseconds_down(quantile.at_least_ns)}")
    return Cell(quantile.value_ns, words.microseconds(quantile.value_ns))


def _row(context: Context, entry: Entry, limits_ns: Sequence[float]) -> list[Any]:
    measures = entry.kind.measures
    above = [_above(context, entry, len(limits_ns) > 1)] if limits_ns else []
    return [
        entry.name.removeprefix("load "),
        measures.n,
        *above,
        _quantile(measures.quantile(0.999)),
        measures.maximum_ns,
        _not_excluded(context, entry),
    ]


def _foremost(context: Context, entries: Sequence[Entry]) -> tuple[list[Entry], str]:
    """Of many those whose maxima are greatest, beside their limits where there are some; and what to say of that."""

    def beside_limit(entry: Entry) -> tuple[bool, float]:
        limit_ns = context.limit_ns(entry.group)
        return limit_ns is not None, (entry.kind.measures.maximum_ns or 0.0) / (limit_ns or 1)

    if len(entries) <= _MOST_ROWS:
        return list(entries), ""
    places = sorted(range(len(entries)), key=lambda place: beside_limit(entries[place]), reverse=True)[:_MOST_ROWS]
    measure = " beside their limits" if _limits_ns(context, entries) else ""
    return (
        [entries[place] for place in sorted(places)],
        f"Shown are the {len(places)} of {len(entries)} whose maxima are greatest{measure}; all stand below.",
    )


def first_table(context: Context) -> Table:
    names = [entry.name for entry in context.entries]
    what = "load" if all(name.startswith("load ") and "·" not in name for name in names) else "measured"
    us, limits_ns = words.microseconds, _limits_ns(context, context.entries)
    above = f"above {words.latency(limits_ns[0])}" if len(limits_ns) == 1 else "above limit"
    columns = (
        Column(what, numeric=False),
        Column("n"),
        *([Column(above)] if limits_ns else []),
        Column("99.9 % [µs]", us),
        Column("maximum [µs]", us),
        Column("not excluded on each CPU: worse once in", numeric=False),
    )
    shown, note = _foremost(context, context.entries)
    rows = {id(entry): _row(context, entry, limits_ns) for entry in context.entries}
    table = Table("overview", "All CPUs together, but for the last column", columns, list(rows.values()))
    every = table.csv_rows()
    return replace(table, rows=[rows[id(entry)] for entry in shown], csv=(every[0], every[1:]), note=note)


def _label(entries: Sequence[Entry]) -> str:
    each = ", ".join(
        f"{entry.name} {entry.kind.all_cpus.n:,} in {words.measured_time(entry.kind.all_cpus.duration_ns)}"
        for entry in entries
    )
    instruments = ", ".join(dict.fromkeys(entry.group.instrument for entry in entries))
    return f"n: {each}; {instruments}."


def _overlay(context: Context, entries: Sequence[Entry]) -> Picture:
    """Few things of one probe: their latency plots over one another; where there is only one, its CPUs."""
    together = [entry.kind.all_cpus for entry in entries]
    limits_ns = _limits_ns(context, entries)
    lines = [line_of(entry) for entry in entries] if len(entries) > 1 else lines_by_cpu(entries[0])
    axis = plot.linear_axis if plot.fits_linear(together, limits_ns) else plot.log_axis
    title = "How often each latency occurred" + (f", {entries[0].name}" if len(entries) == 1 else "")
    figure = latency_figure(title, lines, Scale.over(together, axis, limits_ns, reach=math.inf), _SIZE_IN)
    return plot.picture(figure, "overview", f"Triangles mark the maxima. {_label(entries)}", latency_data(lines))


def _limits_ns(context: Context, entries: Sequence[Entry]) -> list[float]:
    return sorted({float(limit) for entry in entries if (limit := context.limit_ns(entry.group)) is not None})


def _draw_ranges(context: Context, entries: Sequence[Entry]) -> Figure:
    """A row each, its name above it: thin from minimum to maximum, thick from 95 % to 99.9 %."""
    names = ["\n".join(textwrap.wrap(entry.name, _NAME_CHARS)) for entry in entries]
    row_in = 0.42 + 0.14 * max(name.count("\n") for name in names)
    figure, axes = plot.new_figure(
        "Minimum, 95 % to 99.9 % (thick), maximum", (_SIZE_IN[0], 1.1 + row_in * len(entries))
    )
    axes.set_xscale("log")
    axes.set_yticks([])
    axes.set_ylim(len(entries) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    for row, entry in enumerate(entries):
        _draw_range(axes, row + 0.15, entry)
        axes.annotate(
            names[row].replace("$", r"\$"),
            (0.0, row - 0.1),
            xycoords=("axes fraction", "data"),
            fontsize=9,
            va="bottom",
        )
    for limit_ns in _limits_ns(context, entries):
        axes.axvline(limit_ns / 1000.0, color=plot.LIMIT, linestyle="--", linewidth=1.2)
        axes.annotate(
            f"limit {words.latency(limit_ns)}",
            (limit_ns / 1000.0, 0.0),
            color=plot.LIMIT,
            fontsize=9,
            xycoords=("data", "axes fraction"),
            xytext=(-3, 3),
            textcoords="offset points",
            ha="right",
        )
    plot.plain_log_axis(axes.xaxis)
    axes.set_xlabel("latency [µs], logarithmic")
    return figure


def _draw_range(axes: Axes, at: float, entry: Entry) -> None:
    """Of a jitter, magnitudes: it has no minimum worth drawing."""
    measures = entry.kind.measures
    most_us = max(_LEAST_US, (measures.maximum_ns or 0.0) / 1000.0)
    low_us, high_us = (
        (most_us if ns is None else max(_LEAST_US, ns / 1000.0))
        for ns in (measures.quantile(0.95).value_ns, measures.quantile(0.999).value_ns)
    )
    minimum_us = (measures.minimum_ns or 0.0) / 1000.0
    least_us = low_us if entry.kind.all_cpus.two_sided or minimum_us <= 0 else minimum_us
    axes.plot([least_us, most_us], [at, at], color=plot.COLOURS[0], linewidth=1)
    axes.plot([low_us, high_us], [at, at], color=plot.COLOURS[0], linewidth=6, solid_capstyle="butt")
    axes.plot([most_us], [at], "D", color=plot.COLOURS[1], markersize=5)


def _ranges(context: Context, entries: Sequence[Entry]) -> Picture:
    """Many things, or things of several probes, whose plots over one another nobody could tell apart."""
    drawn, note = _foremost(context, entries)
    rows = [
        (entry.name, m.n, m.minimum_ns, m.quantile(0.95).value_ns, m.quantile(0.999).value_ns, m.maximum_ns)
        for entry in drawn
        for m in (entry.kind.measures,)
    ]
    data = (("measured", "n", "min_ns", "p95_ns", "p99_9_ns", "max_ns"), rows)
    n = sum(entry.kind.all_cpus.n for entry in drawn)
    instruments = ", ".join(dict.fromkeys(entry.group.instrument for entry in drawn))
    return plot.picture(
        _draw_ranges(context, drawn),
        "overview",
        f"Diamonds mark the maxima. n = {n:,} together, one by one in the table; {instruments}. {note}".rstrip(),
        data,
    )


def _figure(context: Context) -> Picture | None:
    entries = context.entries or context.ways
    if not entries:
        return None
    probes = {entry.group.recordings[0].head.probe for entry in entries}
    return (_overlay if len(entries) <= MOST_NAMED and len(probes) == 1 else _ranges)(context, entries)


def make_overview(context: Context) -> Overview:
    """What the first screen shows."""
    other = None if context.entries else throughput.summary(context) or stations.summary(context)
    return Overview(
        _when(context),
        _systems(context.groups) if context.groups else (),
        _identity(context),
        first_table(context) if context.entries else other,
        _figure(context),
    )
