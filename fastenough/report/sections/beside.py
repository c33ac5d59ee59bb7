# SPDX-License-Identifier: GPL-2.0-or-later
"""Published reference systems and these runs in the same columns, computed in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastenough.reference import Reference
from fastenough.reference.columns import columns_of
from fastenough.reference.figures import Figure
from fastenough.report.context import Context
from fastenough.report.document import Column, ReportTable, Section
from fastenough.report.source_tables import own_figure


def _table(reference: Reference, probe: str, own_figures: Sequence[Figure], instruments: str) -> ReportTable:
    published = reference.of(probe)
    figure_columns = columns_of(published)
    columns = (
        Column("source", numeric=False),
        *(Column(column.title, column.written, column.numeric) for column in figure_columns),
    )
    rows: list[list[Any]] = [
        [source, *(column.of(figure) for column in figure_columns)]
        for source, figures in (("yours", own_figures), ("published", published))
        for figure in figures
    ]
    return ReportTable(
        f"beside-{reference.name}-{probe}",
        f"{probe}: your results and {reference.title}",
        columns,
        rows,
        note=f"Yours: {instruments}. Published: {reference.source}; {reference.machine}; "
        f"{reference.conditions}; {reference.instrument}. Frequencies of all rows are computed in "
        "the same way and rounded down.",
    )


def section(context: Context) -> Section | None:
    tables, lacking = [], []
    for reference in context.references:
        for probe in reference.probes:
            measured = [
                (group, kind)
                for group in context.groups
                if group.recordings[0].head.probe == probe
                for kind in group.judged_kinds
                if kind.all_cpus.n
            ]
            if measured:
                instruments = ", ".join(dict.fromkeys(group.instrument for group, _ in measured))
                tables.append(
                    _table(reference, probe, [own_figure(group, kind) for group, kind in measured], instruments)
                )
        if not any(table.name.startswith(f"beside-{reference.name}-") for table in tables):
            lacking.append(
                f"{reference.name} has figures for probes that were not measured here: {', '.join(reference.probes)}."
            )
    if not context.references:
        return None
    return Section(
        "beside",
        "Comparison with published systems",
        "The published systems differ in machine, kernel and load: they only show the scale. They are no evidence "
        "about this system, and no verdict uses them. " + " ".join(lacking),
        tables,
    )
