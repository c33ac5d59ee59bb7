# SPDX-License-Identifier: GPL-2.0-or-later
"""The summary: time and system, reasons, next steps, caveats, and one table and one figure of all loads."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fastenough.analysis import Assessment, Judgment, Quantile, RequirementResult, requirement_name, words
from fastenough.analysis.judgment import SEVERITY
from fastenough.model import Outcome
from fastenough.report import plot
from fastenough.report.context import Context, RunGroup, SeriesEntry, maximum_cell
from fastenough.report.document import Cell, Column, Picture, ReportTable, Text, plain
from fastenough.report.latency import (
    MOST_NAMED,
    Scale,
    counted_note,
    latency_data,
    latency_figure,
    line_of,
    lines_by_cpu,
)
from fastenough.report.sections import stations, throughput

_SIZE_IN = (5.8, 4.0)
_MOST_ROWS = 16
"""More would not fit on the first screen."""
_NAME_CHARS = 72
"""Width of the name of a row above it."""
_LEAST_US = 0.01
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Overview:
    """Head of the page.  ``identity``: names the runs on every printed page.  ``requirements``: the verdict on each, if
    there are several."""

    when: str
    systems: tuple[str, ...]
    identity: str
    table: ReportTable | None
    figure: Picture | None
    requirements: ReportTable | None = None


def _instant(wall_ns: int) -> datetime:
    return datetime.fromtimestamp(wall_ns / 1e9, UTC)


def _when(context: Context) -> str:
    """From the begin of the first run to the end of the last, and the number of runs."""
    not_applicable = sum(recording.outcome is Outcome.NOT_APPLICABLE for recording in context.recordings)
    suffix = f"; {words.counted(not_applicable, 'run')} not applicable" if not_applicable else ""
    recordings = [recording for group in context.groups for recording in group.recordings]
    if not recordings:
        return f"Nothing was measured{suffix}"
    begins = [recording.head.begin.wall_ns for recording in recordings]
    runs = f"in {words.counted(len(begins), 'run')}{suffix}"
    if not all(begins):
        return f"Measured at an unknown time, {runs}"
    ends = [begin + recording.duration_ns for begin, recording in zip(begins, recordings, strict=True)]
    first, last = _instant(min(begins)), _instant(max(ends))
    until = last.strftime(" to %H:%M" if first.date() == last.date() else " to %Y-%m-%d %H:%M")
    began = f"{first:%Y-%m-%d %H:%M}"
    return f"Measured {began}{until if last - first >= _MINUTE else ''} UTC {runs}"


def _system(group: RunGroup) -> str:
    cpu = (group.recordings[0].head.profile or {}).get("cpu") or {}
    processor = " × ".join(str(cpu[part]) for part in ("count", "model") if cpu.get(part))
    return "; ".join(filter(None, (group.configuration, processor)))


def _systems(groups: Sequence[RunGroup]) -> tuple[str, ...]:
    """Each system; then the implementations and instruments of all of them."""
    how = [
        ", ".join(dict.fromkeys(names))
        for names in zip(
            *((group.recordings[0].head.implementation, group.instrument) for group in groups), strict=True
        )
    ]
    systems = list(dict.fromkeys(_system(group) for group in groups))
    return ("; ".join([*systems, *how]),) if len(systems) < 2 else (*systems, "; ".join(how))


def _identity(context: Context) -> str:
    runs = [recording.run_id for recording in context.recordings]
    if len(runs) < 2:
        return f"run {runs[0]}" if runs else "no run"
    return f"{len(runs)} runs, {runs[0]} to {runs[-1]}"


_MOST_LIMITS = 3
"""Limits with a column each; the table of requirements has all."""


def _above(entry: SeriesEntry, limit_ns: int | None, below: str = "") -> Cell:
    """How many values may lie above the limit, "≥ n" if values are missing."""
    if limit_ns is None:
        return Cell(None, "no limit")
    values = entry.kind.all_cpus
    surely, possibly = values.exceeded(limit_ns)
    if values.lost or values.omitted_count_unknown:
        return Cell(None, f"≥ {plain(surely)}", below)
    return Cell(possibly, plain(possibly), below)


def _limit_columns(context: Context) -> list[tuple[str, Callable[[SeriesEntry], Cell]]]:
    """Titles and cells of the columns that count values above limits: one column for each limit, or a single one with
    the limit of each row if these differ and no row has several."""
    of_rows = [context.limits_ns(entry.group) for entry in context.entries]
    limits_ns = sorted(set().union(*of_rows))
    if len(limits_ns) > 1 and all(len(limits) <= 1 for limits in of_rows):

        def own(entry: SeriesEntry) -> Cell:
            limit_ns = next(iter(context.limits_ns(entry.group)), None)
            return _above(entry, limit_ns, "" if limit_ns is None else words.exact_time(limit_ns))

        return [("above limit", own)]

    def column(limit_ns: int) -> Callable[[SeriesEntry], Cell]:
        def cell(entry: SeriesEntry) -> Cell:
            limits = context.limits_ns(entry.group)
            if limits and limit_ns not in limits:
                return Cell(None, "not required")
            return _above(entry, limit_ns if limits else None)

        return cell

    return [(f"above {words.exact_time(limit_ns)}", column(limit_ns)) for limit_ns in limits_ns[:_MOST_LIMITS]]


def requirements_table(assessment: Assessment) -> ReportTable | None:
    """The verdict on each of several requirements, the worst first; None for one or none."""
    results = sorted(assessment.requirement_results, key=lambda result: SEVERITY.index(result.verdict))
    if not results:
        return None
    several = len({result.probe for result in results}) > 1
    columns = (
        Column("requirement", numeric=False),
        *([Column("probe", numeric=False)] if several else []),
        Column("verdict", numeric=False),
        Column("activations"),
        Column("maximum [µs]", words.microseconds),
    )
    rows = [
        (
            requirement_name(result.requirement),
            *([result.probe] if several else []),
            str(result.verdict),
            *_judged_values([judgment for judgment in assessment.judgments if _is_about(judgment, result)]),
        )
        for result in results
    ]
    return ReportTable("requirements", "Verdict on each requirement; the headline states the worst", columns, rows)


def _is_about(judgment: Judgment, result: RequirementResult) -> bool:
    return (judgment.probe, judgment.requirement) == (result.probe, result.requirement)


def _judged_values(judgments: Sequence[Judgment]) -> tuple[Cell | int, Cell | float]:
    """The number of activations and the maximum of these judgments."""
    n = sum(judgment.n for judgment in judgments)
    maxima = [judgment.maximum_ns for judgment in judgments if judgment.maximum_ns is not None]
    known = len(maxima) == len(judgments)
    return (
        Cell(None, f"≥ {plain(n)}") if any(judgment.n_is_least for judgment in judgments) else n,
        max(maxima) if known and maxima else Cell(None, "unknown"),
    )


def _rate_bound(context: Context, entry: SeriesEntry) -> Cell:
    judgment = context.judgment(entry.group)
    if judgment is None or not judgment.bound.n or context.is_broken(entry.group):
        return Cell(None, "no bound")
    every_ns = judgment.bound.every_ns
    return Cell(
        judgment.bound.rate,
        f"1 in {int(1 / judgment.bound.rate):,}",
        "" if every_ns is None else f"1 in {words.at_least(every_ns)}",
    )


def _quantile(quantile: Quantile) -> Cell:
    return Cell(quantile.value_ns, words.microseconds_or_least(quantile.value_ns, quantile.at_least_ns))


def _row(context: Context, entry: SeriesEntry, above: Sequence[Callable[[SeriesEntry], Cell]]) -> list[Any]:
    measures = entry.kind.measures
    return [
        entry.name.removeprefix("load "),
        measures.n,
        *(cell(entry) for cell in above),
        _quantile(measures.quantile(0.999)),
        maximum_cell(measures),
        _rate_bound(context, entry),
    ]


def _foremost(context: Context, entries: Sequence[SeriesEntry]) -> tuple[list[SeriesEntry], str]:
    """Of many entries those with the greatest maxima, relative to their limits if there are any; and a note on that."""

    def beside_limit(entry: SeriesEntry) -> tuple[bool, float]:
        limits_ns = context.limits_ns(entry.group)
        return bool(limits_ns), (entry.kind.measures.reached_ns or 0.0) / min(limits_ns, default=1)

    if len(entries) <= _MOST_ROWS:
        return list(entries), ""
    places = sorted(range(len(entries)), key=lambda place: beside_limit(entries[place]), reverse=True)[:_MOST_ROWS]
    measure = " relative to their limits" if _limits_ns(context, entries) else ""
    return (
        [entries[place] for place in sorted(places)],
        f"The {len(places)} of {len(entries)} with the greatest maxima{measure}; the tables below have all.",
    )


def first_table(context: Context) -> ReportTable:
    names = [entry.name for entry in context.entries]
    heading = "load" if all(name.startswith("load ") and "·" not in name for name in names) else "measured"
    us, above = words.microseconds, _limit_columns(context)
    columns = (
        Column(heading, numeric=False),
        Column("n"),
        *(Column(title) for title, _ in above),
        Column("99.9 % [µs]", us),
        Column("maximum [µs]", us),
        Column("rate above the maximum, at most (95 %)", numeric=False),
    )
    foremost, note = _foremost(context, context.entries)
    cells = [cell for _, cell in above]
    rows = {id(entry): _row(context, entry, cells) for entry in context.entries}
    table = ReportTable("overview", "All CPUs combined; last column per CPU", columns, list(rows.values()))
    every = table.csv_rows()
    return replace(table, rows=[rows[id(entry)] for entry in foremost], csv=(every[0], every[1:]), note=note)


def _label(entries: Sequence[SeriesEntry]) -> str:
    counts = ", ".join(
        f"{entry.name} {entry.kind.all_cpus.n:,} in {words.measured_time(entry.kind.all_cpus.duration_ns)}"
        for entry in entries
    )
    instruments = ", ".join(dict.fromkeys(entry.group.instrument for entry in entries))
    return f"n: {counts}; {instruments}."


def _overlay(context: Context, entries: Sequence[SeriesEntry]) -> Picture:
    """The latency plots of a few entries of one probe in one figure; of a single entry, those of its CPUs."""
    together = [entry.kind.all_cpus for entry in entries]
    limits_ns = _limits_ns(context, entries)
    lines = [line_of(entry) for entry in entries] if len(entries) > 1 else lines_by_cpu(entries[0])
    axis = plot.linear_axis if plot.fits_linear(together, limits_ns) else plot.log_axis
    title = "Latency histogram" + (f", {entries[0].name}" if len(entries) == 1 else "")
    figure = latency_figure(title, lines, Scale.over(together, axis, limits_ns, reach=math.inf), _SIZE_IN)
    caption = f"Triangles mark the maxima. {_label(entries)}{counted_note(together)}"
    return plot.picture(figure, "overview", caption, latency_data(lines))


def _limits_ns(context: Context, entries: Sequence[SeriesEntry]) -> list[float]:
    return sorted({float(limit_ns) for entry in entries for limit_ns in context.limits_ns(entry.group)})


def _draw_ranges(context: Context, entries: Sequence[SeriesEntry]) -> Figure:
    """One row per entry, its name above: thin from minimum to maximum, thick from 95 % to 99.9 %."""
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
            f"limit {words.exact_time(limit_ns)}",
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


def _draw_range(axes: Axes, row: float, entry: SeriesEntry) -> None:
    """Draw one range; of jitter the magnitudes, without a minimum."""
    measures = entry.kind.measures
    most_us = max(_LEAST_US, (measures.reached_ns or 0.0) / 1000.0)
    low_us, high_us = (
        (most_us if ns is None else max(_LEAST_US, ns / 1000.0))
        for ns in (measures.quantile(0.95).value_ns, measures.quantile(0.999).value_ns)
    )
    minimum_us = (measures.minimum_ns or 0.0) / 1000.0
    least_us = low_us if entry.kind.all_cpus.two_sided or minimum_us <= 0 else minimum_us
    axes.plot([least_us, most_us], [row, row], color=plot.COLOURS[0], linewidth=1)
    axes.plot([low_us, high_us], [row, row], color=plot.COLOURS[0], linewidth=6, solid_capstyle="butt")
    axes.plot([most_us], [row], "D", color=plot.COLOURS[1], markersize=5)


def _ranges(context: Context, entries: Sequence[SeriesEntry]) -> Picture:
    """A range each for many entries, or entries of several probes, whose plots could not be distinguished."""
    foremost, note = _foremost(context, entries)
    rows = [
        (entry.name, m.n, m.minimum_ns, m.quantile(0.95).value_ns, m.quantile(0.999).value_ns, m.maximum_ns)
        for entry in foremost
        for m in (entry.kind.measures,)
    ]
    data = (("measured", "n", "min_ns", "p95_ns", "p99_9_ns", "max_ns"), rows)
    n = sum(entry.kind.all_cpus.n for entry in foremost)
    instruments = ", ".join(dict.fromkeys(entry.group.instrument for entry in foremost))
    return plot.picture(
        _draw_ranges(context, foremost),
        "overview",
        f"Diamonds mark the maxima. n = {n:,} in total; {instruments}. {note}".rstrip(),
        data,
    )


def _figure(context: Context) -> Picture | None:
    entries = context.entries or context.ways
    if not entries:
        return None
    probes = {entry.group.recordings[0].head.probe for entry in entries}
    return (_overlay if len(entries) <= MOST_NAMED and len(probes) == 1 else _ranges)(context, entries)


def make_overview(context: Context) -> Overview:
    """What the summary shows beside its lists."""
    other = None if context.entries else throughput.summary(context) or stations.summary(context)
    return Overview(
        _when(context),
        _systems(context.groups) if context.groups else (),
        _identity(context),
        first_table(context) if context.entries else other,
        _figure(context),
        requirements_table(context.assessment),
    )


def summary_lists(context: Context) -> list[Text]:
    """Reasons, next steps and caveats, each once and none empty."""
    assessment, advice = context.assessment, context.advice
    lists = (
        ("Reasons", assessment.reasons),
        ("Next steps", (*(advice.next if advice else ()), *assessment.next_steps, *_campaign_steps(context))),
        ("Caveats", (*(advice.cautions if advice else ()), *assessment.cautions)),
    )
    return [Text(title, tuple(dict.fromkeys(lines))) for title, lines in lists if lines]


def _campaign_steps(context: Context) -> Iterator[str]:
    """Next steps after a campaign; none of another report."""
    if context.note is None:
        return
    if context.groups and not any(map(context.limits_ns, context.groups)):
        yield (
            'State the limit of your task: requirement = {limit = "..."} in the plan, or fastenough report --limit. '
            "Without a limit there is no verdict."
        )
    tightest = next((supported for supported in context.assessment.supported if supported.miss_rate == 0), None)
    if tightest is not None:
        yield (
            f"These data cannot support a limit below {words.latency(tightest.limit_ns)} that is never exceeded "
            f"({words.percent(tightest.confidence)} confidence). It needs another system or a longer measurement."
        )
    if len({(group.configuration, group.recordings[0].head.implementation) for group in context.groups}) > 1:
        yield "Compare kernels and implementations by limit and maintenance cost: fastenough advise --limit LIMIT"
        yield "Compare two of these runs, each difference with its interval: fastenough compare FIRST SECOND"
    yield "Repeat the campaign to confirm the result: the maximum of one campaign may not be the worst case."
