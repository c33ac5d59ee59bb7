# SPDX-License-Identifier: GPL-2.0-or-later
"""Why the verdict is what it is, what would settle it, and which checks of the data were passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastenough.analysis import words
from fastenough.analysis.assessment import Finding
from fastenough.analysis.checks import RUN_CHECKS
from fastenough.recording import Recording
from fastenough.report.context import Context
from fastenough.report.document import Folded, Part, Section, Text

Check = Callable[[Recording], Iterator[Finding]]


def _name(check: Check) -> str:
    """A check's function is named by what it finds in order."""
    said = check.__name__.strip("_").replace("_", " ")
    return said[0].upper() + said[1:]


def _passed(context: Context) -> Folded | None:
    """The checks that found nothing in any of the runs."""
    believed = [recording for group in context.groups for recording in group.recordings]
    passed = [_name(check) for check in RUN_CHECKS if not any(finding for one in believed for finding in check(one))]
    if not believed or not passed:
        return None
    return Folded(
        f"{len(passed)} of {words.counted(len(RUN_CHECKS), 'check')} of the data found nothing in any run",
        [Text(f"{'; '.join(passed)}.")],
    )


def section(context: Context) -> Section | None:
    assessment = context.assessment
    parts: list[Part] = [
        Text(title, lines)
        for title, lines in (
            ("What was found", assessment.reasons),
            ("What would settle it", assessment.settle),
            ("To be kept in mind", assessment.cautions),
        )
        if lines
    ]
    passed = _passed(context)
    return Section("checks", "Why this verdict", "", [*parts, *([passed] if passed else [])])
