# SPDX-License-Identifier: GPL-2.0-or-later
"""Why the verdict is what it is, what would settle it, and which checks of the data were passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastenough.analysis import load_name, words
from fastenough.analysis.assessment import Finding
from fastenough.analysis.checks import RUN_CHECKS
from fastenough.recording import Recording
from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Part, Section, Table, Text

Check = Callable[[Recording], Iterator[Finding]]


def _name(check: Check) -> str:
    """A check's function is named by what it finds in order."""
    said = check.__name__.strip("_").replace("_", " ")
    return said[0].upper() + said[1:]


def _said(check: Check, recordings: list[Recording]) -> str:
    passed = [recording for recording in recordings if not any(check(recording))]
    if len(passed) == len(recordings):
        return f"all {words.counted(len(recordings), 'run')}"
    return ", ".join(f"{recording.run_id} ({load_name(recording) or 'no load stated'})" for recording in passed)


def _passed(context: Context) -> Folded | None:
    believed = [recording for group in context.groups for recording in group.recordings]
    rows = [(_name(check), said) for check in RUN_CHECKS if (said := _said(check, believed))] if believed else []
    if not rows:
        return None
    columns = (Column("check", numeric=False), Column("passed by", numeric=False))
    return Folded(f"{words.counted(len(rows), 'check')} of the data passed",
                  [Table("checks", "Checks of the data of each run that found nothing", columns, rows)])


def section(context: Context) -> Section | None:
    assessment = context.assessment
    parts: list[Part] = [Text(title, lines) for title, lines in (
        ("What was found", assessment.reasons), ("What would settle it", assessment.settle),
        ("To be kept in mind", assessment.cautions)) if lines]
    passed = _passed(context)
    return Section("checks", "Why this verdict", "", [*parts, *([passed] if passed else [])])
