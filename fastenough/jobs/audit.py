# SPDX-License-Identifier: GPL-2.0-or-later
"""Audit: read the facts of a board once and apply all checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastenough.audit import Finding, Severity, Standing, audit
from fastenough.facts import collect
from fastenough.link import Link


@dataclass(frozen=True)
class Audit:
    """``machine``: what was looked at, in words."""

    board: str
    machine: str
    findings: tuple[Finding, ...]

    def of(self, standing: Standing, severity: Severity | None = None) -> list[Finding]:
        return [
            finding
            for finding in self.findings
            if finding.standing is standing and severity in (None, finding.severity)
        ]


def audit_of(board: str, profile: Mapping[str, Any]) -> Audit:
    """The audit of a machine whose facts are known already."""
    return Audit(board, _machine(profile), tuple(audit(profile)))


def audit_board(board: str, link: Link) -> Audit:
    """Looks only: nothing is changed."""
    return audit_of(board, collect(link))


def _machine(profile: Mapping[str, Any]) -> str:
    kernel, cpu = profile.get("kernel") or {}, profile.get("cpu") or {}
    known = (profile.get("hostname"), cpu.get("model"), kernel.get("release"))
    return ", ".join(str(part) for part in known if part) or "unknown machine"
