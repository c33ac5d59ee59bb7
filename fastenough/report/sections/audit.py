# SPDX-License-Identifier: GPL-2.0-or-later
"""What in the system costs latency or hides it, by the facts that the runs carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastenough.analysis import words
from fastenough.audit import Finding, Standing, audit, ordered
from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Section, Table

_COLUMNS = tuple(
    Column(title, numeric=False)
    for title in ("severity", "matter", "what is", "why it matters", "what changes it", "what that costs elsewhere")
)


def _row(finding: Finding) -> tuple[str, ...]:
    hides = " (hides latency)" if finding.standing is Standing.HIDES else ""
    changes = "; ".join(f"{change.when}: {change.how}" for change in finding.changes) or "–"
    return (finding.severity, f"{finding.title}{hides}", finding.text, finding.why, changes, finding.elsewhere)


def _tables(context: Context) -> Iterator[Table]:
    """One for each system that was measured and of which something is found."""
    profiles: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for recording in context.recordings:
        if recording.head.profile:
            profiles.setdefault(recording.head.profile_sha256 or "", (recording.run_id, recording.head.profile))
    for number, (run_id, profile) in enumerate(profiles.values(), start=1):
        findings = audit(profile)
        told = [finding for finding in ordered(findings) if finding.standing in (Standing.COSTS, Standing.HIDES)]
        if told:
            unknown = sum(finding.standing is Standing.UNKNOWN for finding in findings)
            name = profile.get("hostname") or "A system"
            yield Table(
                f"audit-{number}",
                f"{name}, as found at run {run_id}",
                _COLUMNS,
                [_row(finding) for finding in told],
                note=f"Of {len(findings)} matters {unknown} cannot be known by these facts.",
            )


def section(context: Context) -> Section | None:
    tables = list(_tables(context))
    if not tables:
        return None
    return Section(
        "audit",
        "What in this system may cost latency",
        "By its facts alone, from those that weigh most: whether a matter costs latency here, and how much, "
        "only a measurement says (fastenough audit --measure); not printed.",
        [Folded(words.counted(len(table.rows), "finding"), [table], printed=False) for table in tables],
    )
