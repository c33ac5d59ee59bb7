# SPDX-License-Identifier: GPL-2.0-or-later
"""Methods (events, clock, resolution and cost of each value), passed data checks, and instrument agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fastenough.analysis import load_name, words
from fastenough.analysis.checks import RUN_CHECKS, check_title
from fastenough.analysis.edge_agreement import agreement
from fastenough.report.context import Context, configuration_label
from fastenough.report.document import Column, Folded, ReportTable, Section, Text

_NOTES = (
    "Values are stored in log-linear histograms without an upper end. Minimum, maximum, sum and sum of squares are "
    "exact. Quantiles are upper edges of buckets and are never too low.",
    "Latencies come in bursts, so the unit of evidence is the disturbance: a burst of values above the limit. Bounds "
    "on rates count disturbances; intervals of quantiles come from blocks of time.",
    "A maximum is a lower bound of the worst case. It does not apply to loads, hardware and software that were not "
    "measured.",
    "A negative latency is an early wake-up and is recorded as such.",
)


def _events(context: Context) -> ReportTable:
    rows: dict[tuple[Any, ...], None] = {}
    for group in context.groups:
        for kind in group.kinds:
            series = kind.series
            resolution = f"{100 / 2**series.k:.3g} %"
            tick = "1 ns" if series.tick_ps is None else f"{series.tick_ps / 1000:g} ns"
            rows.setdefault((kind.name, series.from_event, series.to_event, series.clock, tick, resolution), None)
    columns = tuple(
        Column(title, numeric=False) for title in ("series", "from", "to", "clock", "unit", "greatest bucket width")
    )
    return ReportTable("method", "The start and end event of each value", columns, list(rows))


_COSTS = {
    "clock_read_ns": "reading the clock",
    "clock_step_ns": "least step of the clock",
    "record_ns": "storing a value",
}


def _costs(context: Context) -> list[str]:
    costs: dict[tuple[str, str], list[float | None]] = {}
    for group in context.groups:
        for recording in group.recordings:
            for name, value in recording.head.cost_ns.items():
                costs.setdefault((recording.head.probe, name), []).append(value)
    return sorted(
        f"{probe}: {_COSTS.get(name, name.removesuffix('_ns').replace('_', ' '))}: {_range(values)}"
        for (probe, name), values in costs.items()
    )


def _range(values: Sequence[float | None]) -> str:
    """In ns, rounded up."""
    values = sorted({math.ceil(10 * value) / 10 for value in values if value is not None})
    if not values:
        return "unknown"
    return f"{values[0]:g} ns" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g} ns"


def definitions(context: Context) -> Section | None:
    if not context.groups:
        return None
    parts: list[ReportTable | Text] = [_events(context), Text("Definitions", _NOTES)]
    if costs := _costs(context):
        parts.append(Text("Measured cost of the measurement itself (not subtracted)", costs))
    return Section("method", "Methods", "", parts)


def _passed(context: Context) -> Folded | None:
    """The checks that all runs passed."""
    measured = [recording for group in context.groups for recording in group.recordings]
    passed = [
        check_title(check) for check in RUN_CHECKS if not any(finding for run in measured for finding in check(run))
    ]
    if not measured or not passed:
        return None
    return Folded(
        f"{len(passed)} of {words.counted(len(RUN_CHECKS), 'data check')} passed in every run",
        [Text(f"{'; '.join(passed)}.")],
    )


def data_checks(context: Context) -> Section | None:
    """None if no check was passed by all runs."""
    passed = _passed(context)
    if passed is None:
        return None
    return Section("checks", "Data checks", "Checks that failed are listed in the summary.", [passed])


def edge_agreement(context: Context) -> Section | None:
    counted = [(recording, counts) for recording in context.recordings if (counts := agreement(recording)) is not None]
    if not counted:
        return None
    columns = (
        Column("configuration", numeric=False),
        Column("implementation", numeric=False),
        Column("task", numeric=False),
        Column("load", numeric=False),
        Column("sent by the instrument"),
        Column("seen by the board"),
        Column("answered by the board"),
        Column("returned to the instrument"),
        Column("timed out"),
        Column("lost, uncounted"),
        Column("conclusion", numeric=False),
    )
    rows = [
        (
            configuration_label(recording),
            recording.head.implementation,
            recording.head.probe,
            load_name(recording) or "not stated",
            counts.sent,
            counts.seen,
            counts.answered,
            counts.returned,
            counts.timeouts,
            counts.lost_uncounted,
            counts.text,
        )
        for recording, counts in counted
    ]
    return Section(
        "agreement",
        "Agreement of instrument and board",
        "Instrument and board counted the same edges independently. The periodic task sends no answers: its "
        "falling edges are in the column answered by the board.",
        [ReportTable("agreement", "Edge counts of instrument and board, one row per run", columns, rows)],
    )
