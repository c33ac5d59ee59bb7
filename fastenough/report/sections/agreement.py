# SPDX-License-Identifier: GPL-2.0-or-later
"""Edges of the same run as counted by the instrument and by the board."""

from __future__ import annotations

from fastenough.analysis import load_name
from fastenough.analysis.agreement import agreement
from fastenough.report.context import Context, configuration_word
from fastenough.report.document import Column, Section, Table


def section(context: Context) -> Section | None:
    found = [(recording, counts) for recording in context.recordings if (counts := agreement(recording)) is not None]
    if not found:
        return None
    columns = (
        Column("configuration", numeric=False),
        Column("implementation", numeric=False),
        Column("task", numeric=False),
        Column("load", numeric=False),
        Column("sent by the instrument"),
        Column("seen by the board"),
        Column("answered by the board"),
        Column("returned to the instrument"),
        Column("timed out"),
        Column("lost, uncounted"),
        Column("conclusion", numeric=False),
    )
    rows = [
        (
            configuration_word(recording),
            recording.head.implementation,
            recording.head.probe,
            load_name(recording) or "not stated",
            counts.sent,
            counts.seen,
            counts.answered,
            counts.returned,
            counts.timeouts,
            counts.lost_uncounted,
            counts.text,
        )
        for recording, counts in found
    ]
    return Section(
        "agreement",
        "Agreement of instrument and board",
        "Instrument and board counted the same edges independently. The periodic task sends no answers: its "
        "falling edges are in the column answered by the board.",
        [Table("agreement", "Edge counts of instrument and board, one row per run", columns, rows)],
    )
