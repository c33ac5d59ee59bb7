# SPDX-License-Identifier: GPL-2.0-or-later
"""Published reference systems beside what was measured here, in the same columns, computed in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastenough.analysis import words
from fastenough.reference import Reference
from fastenough.reference.columns import columns_of
from fastenough.reference.figures import Figure
from fastenough.report.context import Context, Group, Kind, configuration_word
from fastenough.report.document import Column, Section, Table


def _own(group: Group, kind: Kind) -> Figure:
    """What was measured here, as if it were published."""
    head, measures = group.recordings[0].head, kind.measures
    return Figure(
        probe=head.probe, board=head.board or "", configuration=configuration_word(group.recordings[0]), kernel="",
        implementation=head.implementation, variant=str(head.parameters.get("method") or kind.name), load=group.load,
        command="", n=measures.n, duration=words.duration(measures.duration_ns), minimum_ns=measures.minimum_ns,
        mean_ns=measures.mean_ns, median_ns=measures.quantile(0.5).value_ns, p95_ns=measures.quantile(0.95).value_ns,
        maximum_ns=measures.maximum_ns, beyond=False, printed_95_khz=None, printed_100_khz=None, transfer="", size="",
        speed_mb_s=None, said="", place="")


def _table(reference: Reference, probe: str, own: Sequence[Figure], instruments: str) -> Table:
    published = reference.of(probe)
    shown = columns_of(published)  # what only one's own runs hold stands elsewhere in the report
    columns = (Column("whose", numeric=False), *(Column(one.title, one.written, one.numeric) for one in shown))
    rows: list[list[Any]] = [[whose, *(column.of(figure) for column in shown)]
                             for whose, figures in (("yours", own), ("published", published)) for figure in figures]
    return Table(f"beside-{reference.name}-{probe}", f"{probe}: yours, and {reference.title}", columns, rows,
                 note=f"Yours: {instruments}. Published: {reference.source}; {reference.machine}; "
                 f"{reference.conditions}; {reference.instrument}. Frequencies are computed of all rows in the same "
                 "way and rounded down.")


def section(context: Context) -> Section | None:
    tables, lacking = [], []
    for reference in context.references:
        for probe in reference.probes:
            measured = [(group, kind) for group in context.groups if group.recordings[0].head.probe == probe
                        for kind in group.judged_kinds if kind.all_cpus.n]
            if measured:
                instruments = ", ".join(dict.fromkeys(group.instrument for group, _ in measured))
                tables.append(_table(reference, probe, [_own(*one) for one in measured], instruments))
        if not any(table.name.startswith(f"beside-{reference.name}-") for table in tables):
            lacking.append(f"None of these runs is of a probe that {reference.name} has figures of: "
                           f"{', '.join(reference.probes)}.")
    if not context.references:
        return None
    return Section("beside", "Beside published systems",
                   "Another machine, another kernel, another load: for the scale only. Nothing published is evidence "
                   "about this machine, and no verdict rests on it. " + " ".join(lacking), tables)
