# SPDX-License-Identifier: GPL-2.0-or-later
"""Audit: what in a system delays real-time tasks or hides their delays, by its facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastenough.audit.checks import CHECKS
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Change, Finding, Form, Group, Severity, Standing, When

__all__ = [
    "CHECKS",
    "Change",
    "Facts",
    "Finding",
    "Form",
    "Group",
    "Severity",
    "Standing",
    "When",
    "audit",
    "changeable_now",
    "ordered",
]

_SEVERITIES, _GROUPS = list(Severity), list(Group)


def audit(profile: Mapping[str, Any]) -> list[Finding]:
    """Every check's finding, in the order of the registry."""
    facts = Facts(profile)
    return [check(facts) for check in CHECKS]


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """What weighs most first, and within that by group."""
    return sorted(findings, key=lambda each: (_SEVERITIES.index(each.severity), _GROUPS.index(each.group)))


def changeable_now(findings: Sequence[Finding]) -> dict[str, tuple[Finding, str]]:
    """By the name of a setting of this program: what it would change, and its value; what weighs most first."""
    found: dict[str, tuple[Finding, str]] = {}
    for finding in ordered(findings):
        for change in finding.changes:
            if change.setting is not None:
                found.setdefault(change.setting[0], (finding, change.setting[1]))
    return found
