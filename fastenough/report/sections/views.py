# SPDX-License-Identifier: GPL-2.0-or-later
"""Missed periods: as slept and as owed, side by side."""

from __future__ import annotations

from typing import Any

from fastenough.analysis import measure, words
from fastenough.analysis.merged import OWED
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Column, Section, Table, plain


def _pairs(group: Group) -> list[tuple[Kind, Kind]]:
    by_name = {kind.name: kind for kind in group.kinds}
    owed = {kind.series.name: kind for kind in group.kinds}
    return [(kind, owed[kind.series.name + OWED]) for kind in by_name.values() if kind.series.name + OWED in owed]


def _row(group: Group, slept: Kind, owed: Kind) -> list[Any]:
    row: list[Any] = [group.title.removeprefix("load "), slept.all_cpus.missed]
    for kind in (slept, owed):
        measures = measure(kind.all_cpus)
        row += [measures.n, measures.mean_ns, measures.quantile(0.999).value_ns, measures.maximum_ns]
    return row


def section(context: Context) -> Section | None:
    rows = [_row(group, *pair) for group in context.groups for pair in _pairs(group)]
    if not rows:
        return None
    us = words.microseconds
    measures = (("n", plain), ("mean [µs]", us), ("99.9 % [µs]", us), ("max [µs]", us))
    columns = (Column("load", numeric=False), Column("missed periods"),
               *(Column(f"{view}: {what}", show) for view in ("as slept", "as owed") for what, show in measures))
    table = Table("views", f"Both views of the same periods, all CPUs. {context.conditions}", columns, rows)
    return Section("views", "Missed periods",
                   "A thread that is stopped for 100 ms at a period of 200 µs wakes late once, and 500 periods were "
                   "due meanwhile. As slept, that is one bad value among good ones; as owed, each period that was "
                   "missed is charged with the delay it suffered. The verdict and all other tables use the owed view; "
                   "without missed periods the two agree.", [table])
