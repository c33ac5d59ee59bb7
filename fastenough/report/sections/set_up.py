# SPDX-License-Identifier: GPL-2.0-or-later
"""What a campaign planned to measure, and under what: the matrix of its plan."""

from __future__ import annotations

from fastenough.analysis import words
from fastenough.campaign.matrix import Row
from fastenough.report.context import Context
from fastenough.report.document import Column, Part, Section, Table, Text


def _limit(row: Row) -> str:
    if row.requirement is None:
        return "none stated"
    rate = f", in all but {words.rate(row.requirement.miss_rate)}" if row.requirement.miss_rate else ", never above"
    return f"{words.latency(row.requirement.limit_ns)}{rate}"


def section(context: Context) -> Section | None:
    note = context.note
    if note is None:
        return None
    said = Column("load", numeric=False), Column("source", numeric=False)
    columns = (
        Column("measured", numeric=False),
        Column("under the loads", numeric=False),
        Column("limit", numeric=False),
        Column("each", words.duration),
        Column("repetitions"),
        Column("runs"),
    )
    rows = [(row.what, ", ".join(row.loads), _limit(row), row.each_s * 1e9, row.repeat, row.runs) for row in note.rows]
    parts: list[Part] = [
        Table("plan-matrix", "What the plan measures, on each board and in each configuration", columns, rows),
        Table("plan-loads", "Where the loads come from", said, list(note.loads.items())),
    ]
    if note.settings:
        parts.append(
            Text("Settings that the plan requests", [f"{name} = {value}" for name, value in note.settings.items()])
        )
    return Section("planned", "What was planned", f"Campaign {note.campaign}; its plan is in the appendix.", parts)
