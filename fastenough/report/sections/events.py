# SPDX-License-Identifier: GPL-2.0-or-later
"""The greatest latencies: time, CPU and, if known, cause."""

from __future__ import annotations

from typing import Any

from fastenough.analysis import words
from fastenough.recording import Event, Recording
from fastenough.recording.culprits import culprit_text
from fastenough.report.context import Context, RunGroup
from fastenough.report.document import Column, ReportTable, Section

_MOST = 20


def _culprit(event: Event) -> str:
    cause = culprit_text(event.culprit) if event.culprit else ""
    return "; ".join(part for part in (event.text or "", cause) if part) or "–"


def _row(group: RunGroup, recording: Recording, event: Event) -> tuple[Any, ...]:
    series = next((series for series in recording.series if series.id == event.series), None)
    value_ns = event.value * series.unit_ns if series is not None and event.value is not None else None
    after_s = (event.at.mono_ns - recording.head.begin.mono_ns) / 1e9
    cpu = series.cpu if event.cpu is None and series is not None else event.cpu
    return (
        group.title.removeprefix("load "),
        recording.run_id,
        round(after_s, 6),
        event.kind,
        "–" if series is None else series.name,
        cpu,
        value_ns,
        _culprit(event),
    )


def section(context: Context) -> Section | None:
    rows = [
        _row(group, recording, event)
        for group in context.groups
        if not group.watched
        for recording in group.recordings
        for event in recording.events
    ]
    if not rows:
        return None
    others = [row for row in rows if row[3] not in ("max", "threshold")][:_MOST]
    latest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in sorted((row for row in rows if row[3] in ("max", "threshold")), key=lambda row: row[6] or 0.0):
        latest[(row[1], row[4], row[5], row[2])] = row
    greatest = sorted(latest.values(), key=lambda row: -(row[6] or 0.0))[:_MOST]
    columns = (
        Column("load", numeric=False),
        Column("run", numeric=False),
        Column("after [s]", lambda seconds: f"{seconds:,.3f}"),
        Column("kind", numeric=False),
        Column("series", numeric=False),
        Column("CPU", lambda cpu: "–" if cpu is None else str(cpu)),
        Column("value [µs]", words.microseconds),
        Column("cause", numeric=False),
    )
    dropped = sum(recording.end.events_dropped for recording in context.recordings if recording.end)
    table = ReportTable(
        "events",
        f"The {len(greatest)} greatest of {len(rows):,} events",
        columns,
        [*others, *greatest],
        note=f"{dropped:,} more were not recorded." if dropped else "",
    )
    return Section(
        "events",
        "Greatest latencies",
        "New maxima and other events, in order of size.",
        [table],
    )
