# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes of an audit as lines of a file, each with its comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fastenough.audit.finding import Change, Finding, FindingState, Form

_WIDTH = 100
_GIVEN_AWAY = ("security", "safety")
NOT_MEASURED = "not measured"
_EXCLUSIVE = (
    ("nohz=off", "nohz_full"),
    ("idle=poll", "intel_idle.max_cstate"),
    ("CONFIG_PREEMPT_RT=y", "CONFIG_PREEMPT_DYNAMIC=y"),
)
"""Mutually exclusive boot arguments and options, by name or name and value: the kernel ignores one of the two."""


@dataclass(frozen=True)
class Remark:
    """The measured effect of a setting, in words; ``helps``: whether a benefit is shown."""

    text: str
    helps: bool


Remarks = Mapping[str, Remark]


@dataclass(frozen=True)
class Line:
    """One change with its finding, its measured effect, and whether it is active in the file."""

    change: Change
    finding: Finding
    effect: str
    active: bool
    excluded_by: str = ""
    """Text of the active change that this one conflicts with."""

    @property
    def comment(self) -> list[str]:
        """Comment lines of at most 100 characters, starting with ``#``."""
        text = f"{self.finding.title}: {self.finding.text}. Effect: {self.effect}. Costs: {self.finding.trade_off}."
        if self.excluded_by:
            text += f" Not active: conflicts with {self.excluded_by}."
        plain = "".join(letter if letter.isprintable() else " " for letter in text)
        return textwrap.wrap(
            " ".join(plain.split()), _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
        )

    def written(self, text: str) -> list[str]:
        """Return the comment and then the text, commented out if it is not active."""
        return [*self.comment, text if self.active else f"# {text}", ""]


def lines_of(findings: Sequence[Finding], remarks: Remarks) -> list[Line]:
    """Return each change that can be written into a file, in the order of the findings."""
    lines = [
        _line(change, finding, remarks)
        for finding in findings
        if finding.state in (FindingState.COSTS, FindingState.HIDES)
        for change in finding.changes
        if change.form is not Form.PROSE or change.setting is not None
    ]
    return consistent(lines)


def consistent(lines: Sequence[Line]) -> list[Line]:
    """Return the same lines; of conflicting active lines only the first stays active."""
    checked: list[Line] = []
    for line in lines:
        other = next(
            (accepted for accepted in checked if accepted.active and _conflict(accepted.change, line.change)), None
        )
        excluded = line.active and other is not None
        checked.append(replace(line, active=False, excluded_by=other.change.text) if other and excluded else line)
    return checked


def _conflict(first: Change, second: Change) -> bool:
    """Whether two changes set one name to two values or are mutually exclusive."""
    if first.form is not second.form or first.form is Form.PROSE:
        return False
    values, others = _values(first), _values(second)
    if any(values[name] != others[name] for name in values.keys() & others.keys()):
        return True
    return any(
        (_matches(values, a) and _matches(others, b)) or (_matches(values, b) and _matches(others, a))
        for a, b in _EXCLUSIVE
    )


def _values(change: Change) -> dict[str, str]:
    return {name: value for name, _, value in (assignment.partition("=") for assignment in change.text.split())}


def _matches(values: Mapping[str, str], argument: str) -> bool:
    name, assigned, value = argument.partition("=")
    return name in values and (not assigned or values[name] == value)


def _line(change: Change, finding: Finding, remarks: Remarks) -> Line:
    """The line of a change; active unless it reduces security or safety, or no benefit was measured.

    A boot argument is not measured itself: it is not active either if a measured setting of its finding is not.
    """
    safe = not finding.trade_off.startswith(_GIVEN_AWAY)
    measured = remarks.get(change.setting[0]) if change.setting is not None else None
    if measured is not None:
        return Line(change, finding, measured.text, safe and measured.helps)
    useless = _useless_settings(finding, remarks) if change.form is Form.BOOT else []
    if useless:
        return Line(change, finding, _useless_text(useless), False)
    return Line(change, finding, NOT_MEASURED, safe)


def _useless_text(names: Sequence[str]) -> str:
    settings, are = ("setting", "is") if len(names) == 1 else ("settings", "are")
    return f"{NOT_MEASURED}; the measured {settings} {', '.join(names)} {are} not recommended"


def _useless_settings(finding: Finding, remarks: Remarks) -> list[str]:
    """Names of the measured settings of a finding without a confirmed benefit."""
    names = [change.setting[0] for change in finding.changes if change.setting is not None]
    return [name for name in names if name in remarks and not remarks[name].helps]


def of_form(lines: Iterable[Line], form: Form) -> list[Line]:
    return [line for line in lines if line.change.form is form]


def setting_of(lines: Iterable[Line], name: str) -> Line | None:
    """Return the line whose change is this setting."""
    return next((line for line in lines if line.change.setting is not None and line.change.setting[0] == name), None)


def text_of(head: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# {head}", "# Written by fastenough audit; test before use.", "", *lines]).rstrip() + "\n"
