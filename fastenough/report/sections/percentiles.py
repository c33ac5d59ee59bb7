# SPDX-License-Identifier: GPL-2.0-or-later
"""The percentile table, each quantile with its distribution-free interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastenough.analysis import Measures, Merged, Quantile, measure, words
from fastenough.analysis.measures import CONFIDENCE, QUANTILES
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Cell, Column, Folded, Section, Table

_NAMES = tuple("median" if quantile == 0.5 else words.percent(quantile) for quantile in QUANTILES)

_MOST_OPEN = 32
"""Longer tables are folded."""


def _cell(quantile: Quantile) -> Cell:
    if quantile.at_least_ns is not None:
        return Cell(None, f"≥ {words.microseconds_down(quantile.at_least_ns)}", "beyond the histogram")
    if quantile.value_ns is None:
        return Cell(None, "–", "n too small")
    interval = words.microseconds_interval(quantile.lower_ns, quantile.upper_ns, " … ")
    return Cell(quantile.value_ns, words.microseconds(quantile.value_ns), interval)


def _cpus(values: Merged) -> str:
    return ", ".join(str(cpu) for cpu in values.cpus) if values.cpus else "–"


def _row(group: Group, kind: Kind, cpus: str, measures: Measures) -> list[Any]:
    return [
        group.title.removeprefix("load "),
        kind.name,
        cpus,
        measures.n,
        measures.minimum_ns,
        measures.mean_ns,
        measures.standard_deviation_ns,
        *(_cell(quantile) for quantile in measures.quantiles),
        measures.maximum_ns,
    ]


def _csv(rows: Sequence[tuple[Group, Kind, str, Measures]]) -> tuple[list[str], list[list[Any]]]:
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


def _table(name: str, caption: str, rows: Sequence[tuple[Group, Kind, str, Measures]]) -> Table:
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
    return Table(name, caption, columns, [_row(*row) for row in rows], csv=_csv(rows), note=note)


def section(context: Context) -> Section | None:
    combined = [(group, kind, "all", kind.measures) for group in context.groups for kind in group.judged_kinds]
    if not combined:
        return None
    single = [
        (group, kind, _cpus(values), measure(values))
        for group in context.groups
        for kind in group.judged_kinds
        for values in kind.per_cpu
    ]
    interval = f"Below each quantile: its {words.percent(CONFIDENCE)} interval."
    tables: list[Table | Folded] = [_table("percentiles", f"Latency in µs, all CPUs combined. {interval}", combined)]
    if len(single) > len(combined):
        per_cpu = _table("percentiles-by-cpu", f"Latency in µs, CPU by CPU. {interval}", single)
        tables.append(per_cpu if len(single) <= _MOST_OPEN else Folded("CPU by CPU", [per_cpu]))
    return Section(
        "percentiles",
        "Percentiles",
        "Intervals are distribution-free and come from blocks of time, because the values of one disturbance are "
        "not independent. A dash (–) means too few samples.",
        tables,
    )
