# SPDX-License-Identifier: GPL-2.0-or-later
"""Missed periods: each act as it took place, and corrected for coordinated omission, side by side."""

from __future__ import annotations

import json
from typing import Any

from fastenough.analysis import measure, words
from fastenough.model import Series
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Column, Section, Table, plain


def _pairs(group: Group) -> list[tuple[Kind, Kind]]:
    corrected = {_act(kind.series): kind for kind in group.kinds if kind.series.corrected}
    return [(kind, corrected[_act(kind.series)]) for kind in group.kinds
            if not kind.series.corrected and _act(kind.series) in corrected]


def _act(series: Series) -> tuple[Any, ...]:
    """What both views of one act share."""
    return series.from_event, series.clock, series.period_ns, json.dumps(series.labels, sort_keys=True)


def _row(group: Group, slept: Kind, corrected: Kind) -> list[Any]:
    row: list[Any] = [group.title.removeprefix("load "), slept.all_cpus.missed]
    for kind in (slept, corrected):
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
               *(Column(f"{view}: {what}", show) for view in ("as slept", "corrected") for what, show in measures))
    table = Table("views", f"Both views of the same periods, all CPUs. {context.conditions}", columns, rows)
    return Section("views", "Missed periods",
                   "A thread that is stopped for 100 ms at a period of 200 µs wakes late once, and 500 periods were "
                   "due meanwhile. As slept, that is one bad value among good ones; corrected for coordinated "
                   "omission, each period that was missed is charged with the delay it suffered. The verdict and all "
                   "other tables use the corrected values; without missed periods the two agree.", [table])
