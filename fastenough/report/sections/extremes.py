# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates beyond the maximum, refused estimates with reasons, and changes of the tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fastenough.analysis import words
from fastenough.analysis.changes import ChangePoint, change_points
from fastenough.analysis.estimates import MISSIONS_NS, Estimate, estimates
from fastenough.analysis.extreme_tests import BackTest, Model
from fastenough.analysis.extremes import ReturnLevel
from fastenough.analysis.longer_runs import LongerRun
from fastenough.analysis.maxima import Maxima, maxima_of
from fastenough.report.context import Context
from fastenough.report.document import Cell, Column, ReportTable, Section, Text

_MOST = 6
"""Number of series, those with the greatest maxima: each takes up to 0.08 s."""


def _level(level: ReturnLevel | None) -> Cell:
    if level is None:
        return Cell(None, "–")
    interval = words.microseconds_interval(level.low_ns, words.round_up(level.high_ns, 3))
    return Cell(level.level_ns, words.microseconds(words.round_up(level.level_ns, 3)), interval)


def _back_test(model: Model) -> Cell:
    """Of the second half of the time, and of the first half."""
    halves = ("2nd", model.forward), ("1st", model.backward)
    details = "; ".join(
        f"{half} half: {words.microseconds(test.greatest_ns)}, expected {words.microseconds(test.expected_ns)}"
        for half, test in halves
    )
    return Cell(
        min(test.chance for _, test in halves), ", ".join(f"p = {test.chance:.2f}" for _, test in halves), details
    )


def _longer(longer: LongerRun | None) -> Cell:
    if longer is None:
        return Cell(None, "–")
    return Cell(longer.maximum_ns, words.microseconds(longer.maximum_ns), words.duration(longer.duration_ns))


@dataclass(frozen=True)
class _Accepted:
    """An estimate that passed its tests; ``names``: load, series, CPU, and the measured maximum in ns."""

    names: tuple[Any, ...]
    estimate: Estimate
    model: Model
    longer: LongerRun | None

    def row(self, missions: Sequence[int]) -> list[Any]:
        estimate = self.estimate
        by_mission = {level.mission_ns: level for level in estimate.levels}
        rate = "" if estimate.per_hour is None else f"{estimate.per_hour:,.3g} disturbances an hour"
        return [
            *self.names,
            _longer(self.longer),
            Cell(estimate.method, estimate.method, rate),
            estimate.maxima,
            estimate.shape,
            self.model.fit,
            _back_test(self.model),
            *(_level(by_mission.get(mission)) for mission in missions),
        ]

    def csv(self) -> list[list[Any]]:
        """A line for each level."""
        estimate, model, longer = self.estimate, self.model, self.longer
        tests = [part for test in (model.forward, model.backward) for part in _parts(test)]
        beside = [None] * 3 if longer is None else [longer.run_id, longer.duration_ns, longer.maximum_ns]
        before = [*self.names, *beside, estimate.method, estimate.maxima, estimate.shape, model.fit, model.isolated]
        return [
            [*before, *tests, level.mission_ns, level.level_ns, level.low_ns, level.high_ns]
            for level in estimate.levels
        ]


def _parts(test: BackTest) -> tuple[float, float, float]:
    return test.expected_ns, test.greatest_ns, test.chance


_CSV_HEADER = [
    "load",
    "series",
    "cpu",
    "greatest_seen_ns",
    "longer_run",
    "longer_run_duration_ns",
    "longer_run_greatest_ns",
    "estimated_from",
    "maxima",
    "shape",
    "p_of_fit",
    "p_of_isolated_maximum",
    "second_half_expected_ns",
    "second_half_greatest_ns",
    "p_of_second_half",
    "first_half_expected_ns",
    "first_half_greatest_ns",
    "p_of_first_half",
    "mission_ns",
    "level_ns",
    "low_ns",
    "high_ns",
]


def _table(rows: Sequence[_Accepted]) -> ReportTable:
    accepted_missions = {level.mission_ns for row in rows for level in row.estimate.levels}
    missions = [mission for mission in MISSIONS_NS if mission in accepted_missions]
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("CPU"),
        Column("maximum [µs]", words.microseconds),
        Column("maximum of a longer run [µs]"),
        Column("estimated from", numeric=False),
        Column("maxima"),
        Column("shape", lambda shape: f"{shape:.2f}"),
        Column("p-value of the fit", lambda p: f"{p:.2f}"),
        Column("back-test of each half [µs]"),
        *(Column(f"exceeded once {MISSIONS_NS[mission]} [µs]") for mission in missions),
    )
    return ReportTable(
        "extremes",
        "Levels exceeded by one disturbance in the stated time on average, each with its 95 % interval "
        "(profile likelihood). Back-test: the maximum of each half of the time beside the level that a fit to the "
        "other half expects it to exceed once",
        columns,
        [row.row(missions) for row in rows],
        csv=(_CSV_HEADER, [line for row in rows for line in row.csv()]),
    )


def _changes(title: str, maxima: Maxima) -> list[str]:
    return [
        f"{title}: the median of the maxima changed from {words.latency(change.before_ns)} to "
        f"{words.latency(change.later_ns)} after {words.duration(change.after_ns)} "
        f"(± {words.duration(change.within_ns)}{_date(change)})"
        for change in change_points(maxima)
    ]


def _date(change: ChangePoint) -> str:
    """When the change was, empty if the source of an import does not state it."""
    return f", {datetime.fromtimestamp(change.wall_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC" if change.wall_ns else ""


def section(context: Context) -> Section | None:
    chosen = [
        (group, kind, kind.worst_cpu) for group in context.groups for kind in group.judged_kinds if kind.all_cpus.n
    ]
    if not chosen:
        return None
    accepted: list[_Accepted] = []
    refused: list[str] = []
    changes: list[str] = []
    for group, kind, values in sorted(chosen, key=lambda candidate: -(candidate[2].maximum_ns or 0.0))[:_MOST]:
        title = ", ".join(filter(None, (group.title, kind.name, words.cpus(values.cpus) if values.cpus else "")))
        if context.is_broken(group):
            refused.append(f"{title}: the data are not valid (see the reasons)")
            continue
        names = (
            group.title.removeprefix("load "),
            kind.name,
            values.cpus[0] if values.cpus else None,
            values.maximum_ns,
        )
        longer = context.longer_run(group, values)
        for estimate in estimates(values.parts, longer):
            if estimate.levels and estimate.model is not None:
                accepted.append(_Accepted(names, estimate, estimate.model, longer))
            else:
                refused.append(f"{title}: {estimate.method}: {estimate.refused}")
        changes += _changes(title, maxima_of(values.parts))
    return _section(accepted, refused, changes, len(chosen) > _MOST)


def _section(accepted: Sequence[_Accepted], refused: list[str], changes: list[str], left_out: bool) -> Section:
    which = f" Only the {_MOST} series with the greatest maxima are estimated." if left_out else ""
    parts: list[ReportTable | Text] = [_table(accepted)] if accepted else []
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
