# SPDX-License-Identifier: GPL-2.0-or-later
"""The checks of the data that every run passed; those that failed are reasons of the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastenough.analysis import words
from fastenough.analysis.assessment import Finding
from fastenough.analysis.checks import RUN_CHECKS
from fastenough.recording import Recording
from fastenough.report.context import Context
from fastenough.report.document import Folded, Section, Text

Check = Callable[[Recording], Iterator[Finding]]


def _name(check: Check) -> str:
    """The title of a check, from the name of its function."""
    said = check.__name__.strip("_").replace("_", " ")
    return said[0].upper() + said[1:]


def _passed(context: Context) -> Folded | None:
    """The checks that all runs passed."""
    measured = [recording for group in context.groups for recording in group.recordings]
    passed = [_name(check) for check in RUN_CHECKS if not any(finding for one in measured for finding in check(one))]
    if not measured or not passed:
        return None
    return Folded(
        f"{len(passed)} of {words.counted(len(RUN_CHECKS), 'data check')} passed in every run",
        [Text(f"{'; '.join(passed)}.")],
    )


def section(context: Context) -> Section | None:
    """None if no check was passed by all runs."""
    passed = _passed(context)
    if passed is None:
        return None
    return Section("checks", "Data checks", "Checks that failed are listed in the summary.", [passed])
