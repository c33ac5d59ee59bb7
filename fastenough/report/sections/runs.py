# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of the report and their outcomes."""

from __future__ import annotations

from datetime import UTC, datetime

from fastenough.analysis import load_name, words
from fastenough.model import Outcome
from fastenough.recording import Recording
from fastenough.report.context import Context
from fastenough.report.document import Column, ReportTable, Section


def _begin(recording: Recording) -> str:
    seconds = recording.head.begin.wall_ns / 1e9
    if not seconds:
        return "–"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _outcome(recording: Recording) -> str:
    if recording.damage is not None:
        return f"integrity check failed: {recording.damage}"
    reasons = "; ".join(recording.reasons)
    outcome = str(recording.outcome) if recording.outcome is not None else "interrupted"
    return f"{outcome}: {reasons}" if reasons else outcome


def _proof(recording: Recording) -> str:
    proof = recording.end.load if recording.end else None
    if recording.outcome is Outcome.NOT_APPLICABLE or recording.damage is not None:
        return "–"
    if proof is None or proof.ran is None:
        return "–" if load_name(recording) == "none" else "no proof"
    state = "ran" if proof.ran else "did not run"
    return f"{state}, {proof.cpu_time_s:.3g} s of CPU" if proof.cpu_time_s else state


def _duration(duration_ns: float | None) -> str:
    return "–" if duration_ns is None else words.measured_time(duration_ns)


def _row(recording: Recording) -> tuple[object, ...]:
    head = recording.head
    duration_ns = None if recording.outcome is Outcome.NOT_APPLICABLE else recording.duration_ns
    return (
        recording.run_id,
        f"{head.probe}, {head.implementation}",
        load_name(recording),
        _proof(recording),
        _begin(recording),
        duration_ns,
        _outcome(recording),
        (head.profile_sha256 or "–")[:12],
        f"{head.tool.name} {head.tool.version}",
    )


def section(context: Context) -> Section | None:
    if not context.recordings:
        return None
    columns = (
        Column("run", numeric=False),
        Column("probe", numeric=False),
        Column("load", numeric=False),
        Column("proof of load", numeric=False),
        Column("begin (UTC)", numeric=False),
        Column("duration", _duration),
        Column("outcome", numeric=False),
        Column("profile SHA-256", numeric=False),
        Column("recorded by", numeric=False),
    )
    table = ReportTable(
        "runs", "All runs of this report", columns, [_row(recording) for recording in context.recordings]
    )
    return Section("runs", "Runs", "Each run is one probe under one load. The verdict uses all runs.", [table])
