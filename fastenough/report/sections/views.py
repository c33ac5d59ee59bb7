# SPDX-License-Identifier: GPL-2.0-or-later
"""Missed periods: latencies as measured, and corrected for coordinated omission."""

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
        *(Column(f"{view}: {title}", show) for view in ("measured", "corrected") for title, show in measures),
    )
    table = Table("views", "Both views of the same periods, all CPUs combined", columns, rows)
    return Section(
        "views",
        "Missed periods",
        "If a thread with a period of 200 µs stops for 100 ms, it wakes late once and misses 500 periods. As "
        "measured, that is one late value. Corrected for coordinated omission, every missed period is charged with "
        "its delay. The verdict and all other tables use the corrected values. Without missed periods both agree.",
        [table],
    )
