# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates beyond the maximum, refused estimates with reasons, and changes of the tail."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastenough.analysis import words
from fastenough.analysis.changes import change_points
from fastenough.analysis.estimates import MISSIONS_NS, Estimate, estimates
from fastenough.analysis.extremes import ReturnLevel
from fastenough.analysis.maxima import Maxima, maxima_of
from fastenough.model import Verdict
from fastenough.report.context import Context, RunGroup
from fastenough.report.document import Cell, Column, ReportTable, Section, Text

_MOST = 6
"""Number of series, those with the greatest maxima: each takes up to 0.08 s."""


def _broken(context: Context, group: RunGroup) -> bool:
    runs = {recording.run_id for recording in group.recordings}
    return any(runs & set(one.run_ids) and one.verdict is Verdict.BROKEN for one in context.assessment.judgments)


def _level(level: ReturnLevel | None) -> Cell:
    if level is None:
        return Cell(None, "–")
    interval = words.microseconds_interval(level.low_ns, words.round_up(level.high_ns, 3))
    return Cell(level.level_ns, words.microseconds(words.round_up(level.level_ns, 3)), interval)


def _row(names: tuple[Any, ...], estimate: Estimate, missions: list[int]) -> list[Any]:
    by_mission = {level.mission_ns: level for level in estimate.levels}
    rate = "" if estimate.per_hour is None else f"{estimate.per_hour:,.3g} disturbances an hour"
    return [
        *names,
        Cell(estimate.method, estimate.method, rate),
        estimate.maxima,
        estimate.shape,
        estimate.fit,
        *(_level(by_mission.get(mission)) for mission in missions),
    ]


_CSV_HEADER = [
    "load",
    "series",
    "cpu",
    "greatest_seen_ns",
    "estimated_from",
    "maxima",
    "shape",
    "p_of_fit",
    "mission_ns",
    "level_ns",
    "low_ns",
    "high_ns",
]


def _table(rows: list[tuple[tuple[Any, ...], Estimate]]) -> ReportTable:
    missions = [
        mission
        for mission in MISSIONS_NS
        if any(level.mission_ns == mission for _, estimate in rows for level in estimate.levels)
    ]
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("CPU"),
        Column("maximum [µs]", words.microseconds),
        Column("estimated from", numeric=False),
        Column("maxima"),
        Column("shape", lambda shape: f"{shape:.2f}"),
        Column("p-value of the fit", lambda p: f"{p:.2f}"),
        *(Column(f"exceeded once {MISSIONS_NS[mission]} [µs]") for mission in missions),
    )
    csv = [
        [
            *names,
            estimate.method,
            estimate.maxima,
            estimate.shape,
            estimate.fit,
            level.mission_ns,
            level.level_ns,
            level.low_ns,
            level.high_ns,
        ]
        for names, estimate in rows
        for level in estimate.levels
    ]
    return ReportTable(
        "extremes",
        "Levels exceeded by one disturbance in the stated time on average, each with its 95 % interval "
        "(profile likelihood)",
        columns,
        [_row(*row, missions) for row in rows],
        csv=(_CSV_HEADER, csv),
    )


def _changes(title: str, maxima: Maxima) -> list[str]:
    return [
        f"{title}: the median of the maxima changed from {words.latency(one.before_ns)} to "
        f"{words.latency(one.later_ns)} after {words.duration(one.after_ns)} (± {words.duration(one.within_ns)}, "
        f"{datetime.fromtimestamp(one.wall_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC)"
        for one in change_points(maxima)
    ]


def section(context: Context) -> Section | None:
    chosen = [
        (group, kind, kind.worst_cpu) for group in context.groups for kind in group.judged_kinds if kind.all_cpus.n
    ]
    if not chosen:
        return None
    accepted: list[tuple[tuple[Any, ...], Estimate]] = []
    refused: list[str] = []
    changes: list[str] = []
    for group, kind, values in sorted(chosen, key=lambda candidate: -(candidate[2].maximum_ns or 0.0))[:_MOST]:
        title = ", ".join(filter(None, (group.title, kind.name, words.cpus(values.cpus) if values.cpus else "")))
        if _broken(context, group):
            refused.append(f"{title}: the data are not valid (see the verdict)")
            continue
        names = (
            group.title.removeprefix("load "),
            kind.name,
            values.cpus[0] if values.cpus else None,
            values.maximum_ns,
        )
        for estimate in estimates(values.parts):
            if estimate.levels:
                accepted.append((names, estimate))
            else:
                refused.append(f"{title}: {estimate.method}: {estimate.refused}")
        changes += _changes(title, maxima_of(values.parts))
    return _section(accepted, refused, changes, len(chosen) > _MOST)


def _section(
    given: list[tuple[tuple[Any, ...], Estimate]], refused: list[str], changes: list[str], left_out: bool
) -> Section:
    which = f" Only the {_MOST} series with the greatest maxima are estimated." if left_out else ""
    parts: list[ReportTable | Text] = [_table(given)] if given else []
    if refused:
        parts.append(Text("Refused estimates", refused))
    if changes:
        parts.append(Text("Changes of the maxima during the measurement", changes))
    return Section(
        "extremes",
        "Estimates beyond the maximum",
        "A maximum is a lower bound of the worst case. These estimates extrapolate from the maxima of equal "
        "stretches of time, on the CPU with the greatest maximum, to longer times. They hold only if the system "
        "does not change, and the verdict does not use them." + which,
        parts,
    )
