# SPDX-License-Identifier: GPL-2.0-or-later
"""The findings of an audit as text, most severe first, each with its fix."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from fastenough import words
from fastenough.audit import Finding, Severity, Standing, ordered
from fastenough.cli.output import clean, print_marked, text_width
from fastenough.jobs.audit import Audit

_INDENT = " " * 9
_STYLES = {Severity.HIGH: "bold red", Severity.MEDIUM: "yellow", Severity.LOW: ""}
_LABEL = len("elsewhere: ")
_CUT = "..."


def _said(counts: Sequence[Finding], what: str) -> str:
    by = [
        f"{number} {severity}"
        for severity in Severity
        if (number := sum(finding.severity is severity for finding in counts))
    ]
    return f"{words.counted(len(counts), 'finding')} {what}" + (f" ({', '.join(by)})" if by else "")


def summary(audit: Audit) -> str:
    """Counts of the findings, in one sentence."""
    hiding = audit.of(Standing.HIDES)
    parts = [
        _said(audit.of(Standing.COSTS), "may cost latency"),
        f"{len(hiding)} {'hides' if len(hiding) == 1 else 'hide'} latency",
        f"{len(audit.of(Standing.UNKNOWN))} unknown",
        f"{len(audit.of(Standing.FINE))} fine",
    ]
    return "; ".join(parts)


def _lines(finding: Finding, width: int) -> Iterator[str]:
    wrapper = textwrap.TextWrapper(width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    hides = " (hides latency)" if finding.standing is Standing.HIDES else ""
    yield from wrapper.wrap(clean(f"{finding.group}, {finding.title}{hides}: {finding.text}"))
    wrapper.subsequent_indent = _INDENT + " " * _LABEL
    for label, text in _labelled(finding):
        wrapper.initial_indent = _INDENT + label.ljust(_LABEL)
        yield from wrapper.wrap(clean(text))


def _labelled(finding: Finding) -> Iterator[tuple[str, str]]:
    yield "why:", finding.why
    for number, change in enumerate(finding.changes):
        yield "" if number else "change:", f"{change.when}: {change.how}"
    if finding.changes:
        yield "elsewhere:", finding.elsewhere
    yield "source:", finding.source


def _print_short(mark: str, style: str, findings: Sequence[Finding], width: int) -> None:
    wrapper = textwrap.TextWrapper(
        width, initial_indent=_INDENT, subsequent_indent=_INDENT + "  ", break_on_hyphens=False
    )
    for finding in findings:
        first, *rest = wrapper.wrap(clean(f"{finding.title}: {finding.text}"))
        print_marked(mark.ljust(len(_INDENT)), style, "\n".join([first.removeprefix(_INDENT), *rest]))


def _line(finding: Finding, width: int) -> str:
    """Title, finding and first change in one line of at most ``width`` columns."""
    hides = " (hides latency)" if finding.standing is Standing.HIDES else ""
    change = f" -> {finding.changes[0].how}" if finding.changes else ""
    text = " ".join(clean(f"{finding.title}{hides}: {finding.text.partition(': ')[0]}{change}").split())
    return text if len(text) <= width else f"{text[: width - len(_CUT)]}{_CUT}"


def print_audit(audit: Audit, everything: bool, verbose: bool) -> None:
    """The machine, a summary, and a line for each finding.

    ``everything``: also findings that are fine or unknown; ``verbose``: with reasons, all changes and sources.
    """
    width = text_width()
    for text in (f"{audit.board}: {audit.machine}", summary(audit)):
        print("\n".join(textwrap.wrap(clean(text), width, break_on_hyphens=False)))
    for finding in ordered([*audit.of(Standing.COSTS), *audit.of(Standing.HIDES)]):
        lines = list(_lines(finding, width)) if verbose else [_line(finding, width - len(_INDENT))]
        print_marked(
            str(finding.severity).ljust(len(_INDENT)),
            _STYLES[finding.severity],
            "\n".join([lines[0].removeprefix(_INDENT), *lines[1:]]),
        )
    not_known, well = audit.of(Standing.UNKNOWN), audit.of(Standing.FINE)
    if everything:
        _print_short("unknown", "yellow", not_known, width)
        _print_short("fine", "green", well, width)
    elif not_known:
        print(f"{'unknown'.ljust(len(_INDENT))}{words.counted(len(not_known), 'fact')}")
    more = [
        *([] if verbose else ["reasons, changes and sources: --verbose"]),
        *([] if everything else ["unknown and fine: --all"]),
    ]
    if more:
        print("\n".join(textwrap.wrap(f"({'; '.join(more)})", width, break_on_hyphens=False)))
