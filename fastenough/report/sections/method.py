# SPDX-License-Identifier: GPL-2.0-or-later
"""Methods: the two events of each value, its clock, its resolution, and the cost of measuring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table, Text

_NOTES = (
    "Values are stored in log-linear histograms without an upper end. Minimum, maximum, sum and sum of squares are "
    "exact. Quantiles are upper edges of buckets and are never too low.",
    "Latencies come in bursts, so the unit of evidence is the disturbance: a burst of values above the limit. Bounds "
    "on rates count disturbances; intervals of quantiles come from blocks of time.",
    "A maximum is a lower bound of the worst case. It does not apply to loads, hardware and software that were not "
    "measured.",
    "A negative latency is an early wake-up and is recorded as such.",
)


def _events(context: Context) -> Table:
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
    return Table("method", "The start and end event of each value", columns, list(rows))


_COSTS = {"clock_read_ns": "reading the clock", "record_ns": "storing a value"}


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
    known = sorted({math.ceil(10 * value) / 10 for value in values if value is not None})
    if not known:
        return "unknown"
    return f"{known[0]:g} ns" if len(known) == 1 else f"{known[0]:g} to {known[-1]:g} ns"


def section(context: Context) -> Section | None:
    if not context.groups:
        return None
    parts: list[Table | Text] = [_events(context), Text("Definitions", _NOTES)]
    if costs := _costs(context):
        parts.append(Text("Measured cost of the measurement itself (not subtracted)", costs))
    return Section("method", "Methods", "", parts)
