# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings of ``fastenough doctor``: state, severity, affected measurements and fix."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fastenough import words
from fastenough.cli.output import clean, print_marked, text_width
from fastenough.link import Link

_INDENT = " " * 9


class State(StrEnum):
    """State of a checked subject."""

    FINE = "fine"
    LIMITED = "limited"
    MISSING = "missing"


class Severity(StrEnum):
    """Effect: none; a feature is missing; conclusions are limited; no valid measurement."""

    NONE = "none"
    NOTE = "note"
    WARNING = "warning"
    WRONG = "wrong"


_STYLES = {Severity.WRONG: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "", Severity.NONE: "green"}
_HEADS = {Severity.NONE: "fine"}


@dataclass(frozen=True)
class Finding:
    """One subject, its state and the fix.

    Lines of ``fix`` after the first are commands to paste.  ``concerns`` and ``severity`` come from the check.
    """

    matter: str
    state: State
    text: str
    fix: str | None = None
    concerns: str = ""
    severity: Severity = Severity.NONE


@dataclass(frozen=True)
class InspectedBoard:
    """The inspected board, its profile, and why sudo is not used on it, or an empty text."""

    link: Link
    profile: dict[str, Any]
    distrust: str = ""


@dataclass(frozen=True)
class Check:
    """A check of one subject that changes nothing; the affected measurements, and the severity if it is not fine."""

    examine: Callable[[InspectedBoard], Finding]
    concerns: str
    severity: Severity

    def __call__(self, board: InspectedBoard) -> Finding:
        found = self.examine(board)
        weighs = Severity.NONE if found.state is State.FINE else self.severity
        return replace(found, concerns=self.concerns, severity=weighs)


def _summary(findings: Sequence[Finding]) -> str:
    """The conclusion from all findings."""
    by = {severity: [finding.matter for finding in findings if finding.severity is severity] for severity in Severity}
    wrong, warnings = by[Severity.WRONG], by[Severity.WARNING]
    if wrong:
        return f"Measurements do not work on this machine. Fix first: {', '.join(wrong)}"
    if warnings:
        return (
            f"Timer measurements work on this machine. {words.counted(len(warnings), 'warning')} "
            f"{'limits' if len(warnings) == 1 else 'limit'} the conclusions: {', '.join(warnings)}"
        )
    return "Timer measurements work on this machine, without known limitations"


def _lines(finding: Finding, width: int) -> Iterator[str]:
    """Lines of a finding: text, affected measurements and fix, folded and indented."""
    wrapper = textwrap.TextWrapper(width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    yield from wrapper.wrap(clean(f"{finding.matter}: {finding.text}"))
    if finding.severity is Severity.NONE:
        return
    wrapper.subsequent_indent = _INDENT + " " * len("concerns: ")
    yield from wrapper.wrap(clean(f"concerns: {finding.concerns}"))
    yield from wrapper.wrap(clean(f"fix:      {(finding.fix or '').partition(chr(10))[0]}"))


def print_findings(findings: Sequence[Finding]) -> None:
    """Print the conclusion, the findings by severity, and last, unfolded, the commands to paste."""
    width = text_width()
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
