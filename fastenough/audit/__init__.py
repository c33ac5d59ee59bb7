# SPDX-License-Identifier: GPL-2.0-or-later
"""Audit: find what delays real-time tasks or hides their delays, from the facts of a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastenough.audit.checks import CHECKS
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Change, Finding, FindingState, Form, Group, Severity, When

__all__ = [
    "CHECKS",
    "Change",
    "Facts",
    "Finding",
    "FindingState",
    "Form",
    "Group",
    "Severity",
    "When",
    "audit",
    "changeable_now",
    "ordered",
]

_SEVERITIES, _GROUPS = list(Severity), list(Group)


def audit(profile: Mapping[str, Any]) -> list[Finding]:
    """Return the finding of every check, in the order of the registry."""
    facts = Facts(profile)
    return [check(facts) for check in CHECKS]


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings by severity, highest first, then by group."""
    return sorted(findings, key=lambda finding: (_SEVERITIES.index(finding.severity), _GROUPS.index(finding.group)))


def changeable_now(findings: Sequence[Finding]) -> dict[str, tuple[Finding, str]]:
    """Return finding and value for each setting that can be changed now, highest severity first."""
    changes: dict[str, tuple[Finding, str]] = {}
    for finding in ordered(findings):
        for change in finding.changes:
            if change.setting is not None:
                changes.setdefault(change.setting[0], (finding, change.setting[1]))
    return changes
