# SPDX-License-Identifier: GPL-2.0-or-later
"""Response, periodic and timer tasks across implementations and kernels: tables 4 to 9 and figures 2 to 5 of Brown and
Martin, and an oscilloscope overlay.  Measured by an instrument if there is one, else by the board itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastenough.recording import Histogram
from fastenough.reference import Figure, find_reference
from fastenough.report.context import Context, RunGroup, SeriesKind
from fastenough.report.document import Folded, Part, Picture, ReportTable, Section
from fastenough.report.source_figures import FigureTexts, bars, histograms, overlay
from fastenough.report.source_tables import (
    across_kernels,
    at_home,
    frequency_table,
    maxima_by_kernel,
    names,
    own_figure,
    percentile_table,
    rank,
)


@dataclass(frozen=True)
class ExperimentTexts:
    """A task and its texts.  ``levels``: names of the
    states before and after the edge.  ``signs``: note on signed values.  ``published``: tables in Brown and Martin.
    """

    probe: str
    title: str
    lead: str
    quantity: str
    levels: tuple[str, str]
    signs: str = ""
    published: str = ""


_OUTSIDE = {
    task.probe: task
    for task in (
        ExperimentTexts(
            "response",
            "Response time from input edge to output edge",
            "The instrument toggles the board's input after a random wait and measures the time until the board's "
            "output follows. The figures combine falling and rising edges; those of the paper are for falling edges.",
            "response time",
            ("high", "low"),
            published="tables 4, 5 and 8",
        ),
        ExperimentTexts(
            "periodic",
            "Jitter of a periodic output",
            "The instrument measures the time between falling edges, as in the paper. The figures show its deviation "
            "from the expected period. Rising edges are not included; the board's own times have every toggle. One "
            "late toggle causes two deviations: one period that is too long, and one that is too short.",
            "jitter",
            ("high", "low"),
            ": median signed, 95 % and 100 % absolute",
            "tables 6, 7 and 9",
        ),
    )
}
_BY_ITSELF = {
    task.probe: task
    for task in (
        ExperimentTexts(
            "response",
            "Response time measured by the board itself",
            "Measured without an instrument: the times begin when the board's kernel sees the edge or calls the task. "
            "From pin to pin the times are longer and the frequencies lower.",
            "response time",
            ("to answer", "answered"),
        ),
        ExperimentTexts(
            "periodic",
            "Periodic task measured by the board itself",
            "Measured without an instrument: the delay of each toggle by the board's own clock, with missed periods "
            "charged. The delay between task and pin is not included.",
            "start latency",
            ("to toggle", "toggled"),
        ),
        ExperimentTexts(
            "timer",
            "Wake-ups by implementation and kernel",
            "Wake-up latency by the board's own clock, with missed periods charged.",
            "wake-up latency",
            ("asleep", "awake"),
        ),
    )
}


@dataclass(frozen=True)
class ExperimentCase:
    """One way of measuring: a row of the tables and figures."""

    group: RunGroup
    kind: SeriesKind
    figure: Figure


def _both_edges(group: RunGroup) -> tuple[SeriesKind, ...]:
    """Both directions of the edge combined, if measured by an instrument; else the first kind."""
    kinds = tuple(kind for kind in group.judged_kinds if kind.all_cpus.n)
    if len(kinds) < 2 or not group.recordings[0].head.instrument:
        return kinds[:1]
    merged = [kind.all_cpus for kind in kinds]
    k = min(values.histogram.k for values in merged)
    together = replace(
        merged[0],
        name="latency",
        histogram=Histogram.merged((values.histogram.folded(k) for values in merged), k),
        lost=sum(values.lost for values in merged),
        missed=sum(values.missed for values in merged),
        parts=tuple(part for values in merged for part in values.parts),
    )
    return (replace(kinds[0], name="latency, both edges", all_cpus=together, per_cpu=(together,)),)


def _measured(context: Context, probe: str) -> tuple[ExperimentTexts | None, list[ExperimentCase]]:
    """All results of an instrument; without one, results of several implementations or kernels."""
    measured = [
        (group, kind)
        for group in context.groups
        if group.recordings[0].head.probe == probe
        for kind in _both_edges(group)
    ]
    outside = [(group, kind) for group, kind in measured if group.recordings[0].head.instrument]
    cases = [
        ExperimentCase(group, kind, figure)
        for (group, kind), figure in zip(outside or measured, _named_figures(outside or measured), strict=True)
    ]
    if outside:
        return _OUTSIDE.get(probe), cases
    ways = {(case.figure.board, case.figure.configuration, case.figure.implementation) for case in cases}
    return (_BY_ITSELF[probe] if len(ways) > 1 else None), cases


def _named_figures(measured: Sequence[tuple[RunGroup, SeriesKind]]) -> list[Figure]:
    """The figures of the rows.  Rows with the same name get the difference in their variant."""
    figures = [own_figure(group, kind) for group, kind in measured]
    named = names(figures)
    times = Counter(named)
    return [
        replace(figure, variant=f"{figure.variant}, {group.setup or group.recordings[0].run_id}")
        if times[name] > 1
        else figure
        for figure, name, (group, _) in zip(figures, named, measured, strict=True)
    ]


def _conditions(cases: Sequence[ExperimentCase]) -> str:
    """n, duration, load and instrument."""
    n = ", ".join(
        f"{name} {case.figure.n:,} in {case.figure.duration}"
        for name, case in zip(names([case.figure for case in cases]), cases, strict=True)
    )
    instruments = ", ".join(dict.fromkeys(case.group.instrument for case in cases))
    loads = ", ".join(dict.fromkeys(case.figure.load for case in cases))
    return f"n: {n}. Load: {loads}. Instrument: {instruments}."


def _tables(
    task: ExperimentTexts, name: str, figures: Sequence[Figure], note: str, whose: str = ""
) -> list[ReportTable]:
    """Percentiles, frequencies, and one implementation across kernels."""
    ordered = sorted(figures, key=rank)
    home, across = at_home(ordered), across_kernels(ordered)
    signed_quantity = f"{task.quantity}{task.signs}"
    tables = [
        percentile_table(
            f"{name}-percentiles", f"{whose}Percentiles of the {signed_quantity}", task.quantity, home, note
        ),
        frequency_table(
            f"{name}-frequencies",
            f"{whose}Highest frequencies, rounded down",
            f"highest frequency with a {task.quantity} of at most half the period",
            home,
        ),
    ]
    if across:
        tables.append(
            percentile_table(
                f"{name}-across-kernels",
                f"{whose}One implementation across kernels: {signed_quantity}",
                task.quantity,
                across,
                note,
            )
        )
    return [
        *tables,
        *maxima_by_kernel(
            f"{name}-maxima", f"{whose}Maximum {task.quantity} of each board on each kernel", ordered, note
        ),
    ]


def _pictures(task: ExperimentTexts, cases: Sequence[ExperimentCase], load: str = "") -> list[Picture]:
    figures, merged = [case.figure for case in cases], [case.kind.all_cpus for case in cases]
    texts = FigureTexts(
        "-".join(filter(None, (task.probe, load))),
        task.quantity,
        task.levels,
        f"load {load}" if load else "",
        _conditions(cases),
    )
    return [histograms(texts, figures, merged), bars(texts, figures), overlay(texts, figures, merged)]


def _source_figures(task: ExperimentTexts, cases: Sequence[ExperimentCase]) -> list[Part]:
    """The figures of each load; those of the first unfolded."""
    loads = list(dict.fromkeys(case.figure.load for case in cases))
    if len(loads) == 1:
        return [*_pictures(task, cases)]
    first, *others = (_pictures(task, [case for case in cases if case.figure.load == load], load) for load in loads)
    return [
        *first,
        *(Folded(f"Load {load}", pictures) for load, pictures in zip(loads[1:], others, strict=True)),
    ]


def _published(task: ExperimentTexts) -> Folded:
    """The tables and bars of the paper, made from its numbers; it has none for its histograms."""
    figures = find_reference("beagleboard").of(task.probe)
    how = (
        f"Brown and Martin, {task.published}: BeagleBoard C4 at 720 MHz, kernels 2.6.33, heavy load, two hours "
        "each, external instrument."
    )
    texts = FigureTexts(f"{task.probe}-published", task.quantity, task.levels, "", how)
    return Folded(
        "Published figures of Brown and Martin",
        [
            *_tables(task, f"{task.probe}-published", figures, how, "Published: "),
            bars(texts, sorted(at_home(figures), key=rank)),
        ],
    )


def _section(context: Context, probe: str) -> Section | None:
    task, cases = _measured(context, probe)
    if task is None or not cases:
        return None
    cases = sorted(cases, key=lambda case: rank(case.figure))
    figures = [case.figure for case in cases]
    home = at_home(figures)
    parts: list[Part] = [
        *_tables(task, probe, figures, _conditions(cases)),
        *_source_figures(task, [case for case in cases if case.figure in home]),
    ]
    return Section(
        f"experiment-{probe}", task.title, task.lead, [*parts, *([_published(task)] if task.published else [])]
    )


def response(context: Context) -> Section | None:
    return _section(context, "response")


def periodic(context: Context) -> Section | None:
    return _section(context, "periodic")


def timer(context: Context) -> Section | None:
    return _section(context, "timer")
