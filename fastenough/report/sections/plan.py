# SPDX-License-Identifier: GPL-2.0-or-later
"""The planned runs of a campaign, and its plan file."""

from __future__ import annotations

from fastenough.analysis import requirement_name, words
from fastenough.campaign.progress import Row
from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Part, Preformatted, ReportTable, Section, Text


def _limit(row: Row) -> str:
    return "none" if row.requirement is None else requirement_name(row.requirement)


def planned(context: Context) -> Section | None:
    note = context.note
    if note is None:
        return None
    source_columns = Column("load", numeric=False), Column("source", numeric=False)
    columns = (
        Column("probe", numeric=False),
        Column("loads", numeric=False),
        Column("limit", numeric=False),
        Column("duration", words.duration),
        Column("repetitions"),
        Column("runs"),
    )
    rows = [(row.what, ", ".join(row.loads), _limit(row), row.each_s * 1e9, row.repeat, row.runs) for row in note.rows]
    parts: list[Part] = [
        ReportTable("plan-matrix", "Planned runs on each board in each configuration", columns, rows),
        ReportTable("plan-loads", "Sources of the loads", source_columns, list(note.loads.items())),
    ]
    if note.settings:
        parts.append(Text("Requested settings", [f"{name} = {value}" for name, value in note.settings.items()]))
    return Section("planned", "Campaign plan", f"Campaign {note.campaign}; the plan file is in the appendix.", parts)


def plan_file(context: Context) -> Section | None:
    if context.note is None or not context.note.text:
        return None
    lines = len(context.note.text.splitlines())
    return Section(
        "plan",
        "Plan file",
        "Stored with each run. To repeat the runs: fastenough campaign run FILE.",
        [Folded(f"{lines} lines", [Preformatted(context.note.text)])],
    )
