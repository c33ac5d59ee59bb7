# SPDX-License-Identifier: GPL-2.0-or-later
"""Published reference systems beside what was measured here, in the same columns, computed in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastenough.reference import Reference
from fastenough.reference.columns import columns_of
from fastenough.reference.figures import Figure
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table
from fastenough.report.own import own_figure


def _table(reference: Reference, probe: str, own: Sequence[Figure], instruments: str) -> Table:
    published = reference.of(probe)
    shown = columns_of(published)  # what only one's own runs hold stands elsewhere in the report
    columns = (Column("whose", numeric=False), *(Column(one.title, one.written, one.numeric) for one in shown))
    rows: list[list[Any]] = [
        [whose, *(column.of(figure) for column in shown)]
        for whose, figures in (("yours", own), ("published", published))
        for figure in figures
    ]
    return Table(
        f"beside-{reference.name}-{probe}",
        f"{probe}: yours, and {reference.title}",
        columns,
        rows,
        note=f"Yours: {instruments}. Published: {reference.source}; {reference.machine}; "
        f"{reference.conditions}; {reference.instrument}. Frequencies are computed of all rows in the same "
        "way and rounded down.",
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
                tables.append(_table(reference, probe, [own_figure(*one) for one in measured], instruments))
        if not any(table.name.startswith(f"beside-{reference.name}-") for table in tables):
            lacking.append(
                f"None of these runs is of a probe that {reference.name} has figures of: {', '.join(reference.probes)}."
            )
    if not context.references:
        return None
    return Section(
        "beside",
        "Beside published systems",
        "Another machine, another kernel, another load: for the scale only. Nothing published is evidence "
        "about this machine, and no verdict rests on it. " + " ".join(lacking),
        tables,
    )
