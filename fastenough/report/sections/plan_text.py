# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan by which the runs were made, as it was written."""

from __future__ import annotations

from fastenough.report.context import Context
from fastenough.report.document import Folded, Section, Source


def section(context: Context) -> Section | None:
    if context.note is None or not context.note.text:
        return None
    lines = len(context.note.text.splitlines())
    return Section(
        "plan",
        "The plan",
        "Kept with each run; fastenough campaign run makes the same runs of it again.",
        [Folded(f"{lines} lines", [Source(context.note.text)])],
    )
