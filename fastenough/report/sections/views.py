# SPDX-License-Identifier: GPL-2.0-or-later
"""Missed periods: each act as it took place, and corrected for coordinated omission, side by side."""

from __future__ import annotations

from typing import Any

from fastenough.analysis import words
from fastenough.report.context import Context, Group, Kind, act_of
from fastenough.report.document import Column, Section, Table, plain


def _pairs(group: Group) -> list[tuple[Kind, Kind]]:
    corrected = {act_of(kind.series): kind for kind in group.kinds if kind.series.corrected}
    return [
        (kind, corrected[act_of(kind.series)])
        for kind in group.kinds
        if not kind.series.corrected and act_of(kind.series) in corrected
    ]


def _row(group: Group, slept: Kind, corrected: Kind) -> list[Any]:
    row: list[Any] = [group.title.removeprefix("load "), slept.all_cpus.missed]
    for kind in (slept, corrected):
        measures = kind.measures
        row += [measures.n, measures.mean_ns, measures.quantile(0.999).value_ns, measures.maximum_ns]
    return row


def section(context: Context) -> Section | None:
    rows = [_row(group, *pair) for group in context.groups for pair in _pairs(group)]
    if not rows:
        return None
    us = words.microseconds
    measures = (("n", plain), ("mean [µs]", us), ("99.9 % [µs]", us), ("max [µs]", us))
    columns = (
        Column("load", numeric=False),
        Column("missed periods"),
        *(Column(f"{view}: {what}", show) for view in ("as slept", "corrected") for what, show in measures),
    )
    table = Table("views", "Both views of the same periods, all CPUs together", columns, rows)
    return Section(
        "views",
        "Missed periods",
        "A thread that is stopped for 100 ms at a period of 200 µs wakes late once, and 500 periods were "
        "due meanwhile. As slept, that is one bad value among good ones; corrected for coordinated "
        "omission, each period that was missed is charged with the delay it suffered. The verdict and all "
        "other tables use the corrected values; without missed periods the two agree.",
        [table],
    )
