# SPDX-License-Identifier: GPL-2.0-or-later
"""The audit of the facts recorded with the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastenough.analysis import words
from fastenough.audit import Finding, Standing, audit, ordered
from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Section, Table

_COLUMNS = tuple(
    Column(title, numeric=False) for title in ("severity", "check", "state", "why it matters", "fix", "cost of the fix")
)


def _row(finding: Finding) -> tuple[str, ...]:
    hides = " (hides latency)" if finding.standing is Standing.HIDES else ""
    changes = "; ".join(f"{change.when}: {change.how}" for change in finding.changes) or "–"
    return (finding.severity, f"{finding.title}{hides}", finding.text, finding.why, changes, finding.elsewhere)


def _tables(context: Context) -> Iterator[Table]:
    """One table for each measured system that has findings."""
    profiles: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for recording in context.recordings:
        if recording.head.profile:
            profiles.setdefault(recording.head.profile_sha256 or "", (recording.run_id, recording.head.profile))
    for number, (run_id, profile) in enumerate(profiles.values(), start=1):
        findings = audit(profile)
        listed = [finding for finding in ordered(findings) if finding.standing in (Standing.COSTS, Standing.HIDES)]
        if listed:
            unknown = sum(finding.standing is Standing.UNKNOWN for finding in findings)
            name = profile.get("hostname") or "A system"
            yield Table(
                f"audit-{number}",
                f"{name}, at run {run_id}",
                _COLUMNS,
                [_row(finding) for finding in listed],
                note=f"{unknown} of {len(findings)} checks are unknown from these facts.",
            )


def section(context: Context) -> Section | None:
    tables = list(_tables(context))
    if not tables:
        return None
    return Section(
        "audit",
        "System audit",
        "Settings and facts that may cause or hide latency, most severe first. Only a measurement shows whether "
        "one does, and by how much (fastenough audit --measure). Not printed.",
        [Folded(words.counted(len(table.rows), "finding"), [table], printed=False) for table in tables],
    )
