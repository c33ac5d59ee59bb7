# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan file of the campaign."""

from __future__ import annotations

from fastenough.report.context import Context
from fastenough.report.document import Folded, Section, Source


def section(context: Context) -> Section | None:
    if context.note is None or not context.note.text:
        return None
    lines = len(context.note.text.splitlines())
    return Section(
        "plan",
        "Plan file",
        "Stored with each run. To repeat the runs: fastenough campaign run FILE.",
        [Folded(f"{lines} lines", [Source(context.note.text)])],
    )
