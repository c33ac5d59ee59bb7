# SPDX-License-Identifier: GPL-2.0-or-later
"""Percentiles with their distribution-free intervals, missed periods, and highest frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastenough.analysis import Measures, Merged, Quantile, highest_frequency_hz, measure, words
from fastenough.analysis.measures import CONFIDENCE, QUANTILES, WITHIN_RUNS, quantile_name
from fastenough.report.context import Context, RunGroup, SeriesKind, act_of
from fastenough.report.document import Cell, Column, Folded, ReportTable, Section, plain

_NAMES = tuple(map(quantile_name, QUANTILES))

_MOST_OPEN = 32
"""Longer tables are folded."""


def _beyond(least_ns: float) -> Cell:
    return Cell(None, f"≥ {words.microseconds_down(least_ns)}", "beyond the histogram")


def _maximum(measures: Measures) -> Cell | float | None:
    least_ns = measures.maximum_at_least_ns
    return measures.maximum_ns if least_ns is None else _beyond(least_ns)


def _cell(quantile: Quantile) -> Cell:
    if quantile.at_least_ns is not None:
        return _beyond(quantile.at_least_ns)
    if quantile.value_ns is None:
        return Cell(None, "–", "n too small")
    interval = words.microseconds_interval(quantile.lower_ns, quantile.upper_ns, " … ")
    return Cell(quantile.value_ns, words.microseconds(quantile.value_ns), interval)


def _cpus(values: Merged) -> str:
    return ", ".join(str(cpu) for cpu in values.cpus) if values.cpus else "–"


def _row(group: RunGroup, kind: SeriesKind, cpus: str, measures: Measures) -> list[Any]:
    return [
        group.title.removeprefix("load "),
        kind.name,
        cpus,
        measures.n,
        measures.minimum_ns,
        measures.mean_ns,
        measures.standard_deviation_ns,
        *(_cell(quantile) for quantile in measures.quantiles),
        _maximum(measures),
    ]


def _csv(rows: Sequence[tuple[RunGroup, SeriesKind, str, Measures]]) -> tuple[list[str], list[list[Any]]]:
    header = ["load", "series", "cpu", "n", "lost", "missed", "duration_ns", "min_ns", "mean_ns", "sd_ns"]
    header += [f"{name} {part}" for name in _NAMES for part in ("ns", "lower ns", "upper ns", "reason")]
    lines = [
        [
            group.title.removeprefix("load "),
            kind.name,
            cpus,
            m.n,
            m.lost,
            m.missed,
            m.duration_ns,
            m.minimum_ns,
            m.mean_ns,
            m.standard_deviation_ns,
            *(part for q in m.quantiles for part in (q.value_ns, q.lower_ns, q.upper_ns, q.reason)),
            m.maximum_ns,
        ]
        for group, kind, cpus, m in rows
    ]
    return [*header, "max_ns"], lines


def _table(name: str, caption: str, rows: Sequence[tuple[RunGroup, SeriesKind, str, Measures]]) -> ReportTable:
    us = words.microseconds
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("CPU", numeric=False),
        Column("n"),
        Column("min", words.microseconds_down),
        Column("mean", us),
        Column("s.d.", us),
        *(Column(quantile) for quantile in _NAMES),
        Column("max", us),
    )
    lacking = {
        quantile.reason
        for *_, measures in rows
        for quantile in measures.quantiles
        if quantile.value_ns is not None and quantile.reason
    }
    note = "".join(f"No interval (–): it {reason}. " for reason in sorted(lacking))
    return ReportTable(name, caption, columns, [_row(*row) for row in rows], csv=_csv(rows), note=note)


def percentiles(context: Context) -> Section | None:
    combined = [(group, kind, "all", kind.measures) for group in context.groups for kind in group.judged_kinds]
    if not combined:
        return None
    single = [
        (group, kind, _cpus(values), measure(values))
        for group in context.groups
        for kind in group.judged_kinds
        for values in kind.per_cpu
    ]
    interval = f"Below each quantile: its {words.percent(CONFIDENCE)} interval {WITHIN_RUNS}."
    tables: list[ReportTable | Folded] = [
        _table("percentiles", f"Latency in µs, all CPUs combined. {interval}", combined)
    ]
    if len(single) > len(combined):
        per_cpu = _table("percentiles-by-cpu", f"Latency in µs, CPU by CPU. {interval}", single)
        tables.append(per_cpu if len(single) <= _MOST_OPEN else Folded("CPU by CPU", [per_cpu]))
    return Section(
        "percentiles",
        "Percentiles",
        "Intervals are distribution-free and come from blocks of time, because the values of one disturbance are "
        "not independent. They hold within these runs: another run can differ by more. A dash (–) means too few "
        "samples.",
        tables,
    )


def _pairs(group: RunGroup) -> list[tuple[SeriesKind, SeriesKind]]:
    corrected = {act_of(kind.series): kind for kind in group.kinds if kind.series.corrected}
    return [
        (kind, corrected[act_of(kind.series)])
        for kind in group.kinds
        if not kind.series.corrected and act_of(kind.series) in corrected
    ]


def _views_row(group: RunGroup, slept: SeriesKind, corrected: SeriesKind) -> list[Any]:
    row: list[Any] = [group.title.removeprefix("load "), slept.all_cpus.missed]
    for kind in (slept, corrected):
        measures = kind.measures
        row += [measures.n, measures.mean_ns, measures.quantile(0.999).value_ns, measures.maximum_ns]
    return row


def missed_periods(context: Context) -> Section | None:
    rows = [_views_row(group, *pair) for group in context.groups for pair in _pairs(group)]
    if not rows:
        return None
    us = words.microseconds
    measures = (("n", plain), ("mean [µs]", us), ("99.9 % [µs]", us), ("max [µs]", us))
    columns = (
        Column("load", numeric=False),
        Column("missed periods"),
        *(Column(f"{view}: {title}", show) for view in ("measured", "corrected") for title, show in measures),
    )
    table = ReportTable("views", "Both views of the same periods, all CPUs combined", columns, rows)
    return Section(
        "views",
        "Missed periods",
        "If a thread with a period of 200 µs stops for 100 ms, it wakes late once and misses 500 periods. As "
        "measured, that is one late value. Corrected for coordinated omission, every missed period is charged with "
        "its delay. The verdict and all other tables use the corrected values. Without missed periods both agree.",
        [table],
    )


def frequencies(context: Context) -> Section | None:
    rows = []
    for group in context.groups:
        for kind in group.judged_kinds:
            measures = kind.measures
            most_ns = measures.quantile(0.95).value_ns
            rows.append(
                (
                    group.title.removeprefix("load "),
                    kind.name,
                    measures.n,
                    most_ns,
                    measures.maximum_ns,
                    highest_frequency_hz(most_ns),
                    highest_frequency_hz(measures.maximum_ns),
                )
            )
    if not rows:
        return None
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("n"),
        Column("95 % [µs]", words.microseconds),
        Column("100 % [µs]", words.microseconds),
        Column("95 % frequency [kHz]", words.kilohertz),
        Column("100 % frequency [kHz]", words.kilohertz),
    )
    csv = (["load", "series", "n", "p95_ns", "max_ns", "frequency_95_hz", "frequency_100_hz"], rows)
    table = ReportTable("frequency", "1/(2 L), all CPUs combined, rounded down", columns, rows, csv=csv)
    return Section(
        "frequency",
        "Highest frequencies",
        "The highest frequency with a latency L of at most half the period, for 95 % and for 100 % of the "
        "samples. Half a period is a convention; an application may need more or less.",
        [table],
    )
