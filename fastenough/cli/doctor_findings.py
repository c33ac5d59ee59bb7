# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``fastenough doctor`` finds: how a matter stands, how much that weighs, what it concerns, and the fix."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fastenough import words
from fastenough.cli.output import clean, print_marked, table_width
from fastenough.link import Link

_WIDTH = 100
"""Columns in a file or pipe, and the most on a terminal: longer lines are hard to read."""
_INDENT = " " * 9


class State(StrEnum):
    """How well a matter stands."""

    FINE = "fine"
    LIMITED = "limited"
    MISSING = "missing"


class Severity(StrEnum):
    """What it means: nothing; something can be done without; a result says less; nothing sound can be measured."""

    NONE = "none"
    NOTE = "note"
    WARNING = "warning"
    WRONG = "wrong"


_STYLES = {Severity.WRONG: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "", Severity.NONE: "green"}
_HEADS = {Severity.NONE: "fine"}


@dataclass(frozen=True)
class Finding:
    """One matter, how it stands, and what to do where it could stand better.

    What ``fix`` has behind its first line is to be pasted.  ``concerns`` and ``severity`` come from the check.
    """

    matter: str
    state: State
    text: str
    fix: str | None = None
    concerns: str = ""
    severity: Severity = Severity.NONE


@dataclass(frozen=True)
class Patient:
    """What is examined: a board and its profile, collected once; and why sudo is not used where it could be."""

    link: Link
    profile: dict[str, Any]
    distrust: str = ""


@dataclass(frozen=True)
class Check:
    """Looks at one matter and changes nothing; what it concerns, and how much it weighs where it is not fine."""

    examine: Callable[[Patient], Finding]
    concerns: str
    severity: Severity

    def __call__(self, patient: Patient) -> Finding:
        found = self.examine(patient)
        weighs = Severity.NONE if found.state is State.FINE else self.severity
        return replace(found, concerns=self.concerns, severity=weighs)


def _summary(findings: Sequence[Finding]) -> str:
    """What follows from all of them, in one sentence."""
    by = {severity: [finding.matter for finding in findings if finding.severity is severity] for severity in Severity}
    wrong, warnings = by[Severity.WRONG], by[Severity.WARNING]
    if wrong:
        return f"Nothing sound can be measured here before this is fixed: {', '.join(wrong)}"
    if warnings:
        return (
            f"A timer can be measured here; {words.counted(len(warnings), 'matter')} "
            f"{'limits' if len(warnings) == 1 else 'limit'} what the result says: {', '.join(warnings)}"
        )
    return "A timer can be measured here, and nothing is known that limits what the result says"


def _lines(finding: Finding, width: int) -> Iterator[str]:
    """What was found, what it concerns, and the fix; folded, and indented below the first word."""
    wrapper = textwrap.TextWrapper(width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    yield from wrapper.wrap(clean(f"{finding.matter}: {finding.text}"))
    if finding.severity is Severity.NONE:
        return
    wrapper.subsequent_indent = _INDENT + " " * len("concerns: ")
    yield from wrapper.wrap(clean(f"concerns: {finding.concerns}"))
    yield from wrapper.wrap(clean(f"fix:      {(finding.fix or '').partition(chr(10))[0]}"))


def print_findings(findings: Sequence[Finding]) -> None:
    """The sentence, then what is wrong before what only could be better, and last, unfolded, what is to be pasted."""
    width = min(table_width(_WIDTH), _WIDTH)
    print("\n".join(textwrap.wrap(clean(_summary(findings)), width, break_on_hyphens=False)))
    for severity in (Severity.WRONG, Severity.WARNING, Severity.NOTE, Severity.NONE):
        for finding in findings:
            if finding.severity is severity:
                first, *rest = _lines(finding, width)
                print_marked(
                    _HEADS.get(severity, severity).ljust(len(_INDENT)),
                    _STYLES[severity],
                    "\n".join([first.removeprefix(_INDENT), *rest]),
                )
    for finding in findings:
        paste = (finding.fix or "").partition("\n")[2]
        if paste:
            print(f"\n{paste}")
