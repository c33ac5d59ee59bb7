# SPDX-License-Identifier: GPL-2.0-or-later
"""Uncertainty budgets of the printed latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastenough.analysis import words
from fastenough.analysis.error_sources import Basis
from fastenough.analysis.uncertainty import (
    COVERAGE_FACTOR,
    LEVEL,
    Contribution,
    LatencyUncertainty,
    UncertaintyBudget,
    budget_of,
    true_interval,
    unknown_text,
)
from fastenough.report.context import Context, SeriesEntry
from fastenough.report.document import Cell, Column, Folded, ReportTable, Section

_DETAILS = ("source", "rests on", "type", "distribution", "error of the printed value")
_NO_VALUE = "–"


def _ns(value: float | None) -> str:
    """A bare number of ns, to a tenth, rounded up."""
    if value is None:
        return "unknown"
    return f"{words.round_up(value * 1e3) / 1e3:,.10g}" if value >= 1e-3 else "0"


def _signed_ns(value: float) -> str:
    return "0" if abs(value) < 0.05 else f"{value:+,.1f}" if abs(value) < 1000 else f"{value:+,.0f}"


def _true(latency: LatencyUncertainty) -> Cell:
    """The interval of the true latency; below it, where unknown contributions may lead."""
    return Cell(latency.upper_ns, true_interval(latency), unknown_text(latency))


def _row(name: str, latency: LatencyUncertainty) -> list[Any]:
    return [
        name,
        latency.latency,
        latency.printed_ns,
        _true(latency),
        latency.bias_ns,
        latency.combined_ns,
        latency.expanded_ns,
    ]


def _summary(budgets: Sequence[tuple[str, UncertaintyBudget]]) -> ReportTable:
    header = [
        *("values", "latency", "printed_ns", "lower_ns", "upper_ns", "bias_ns", "combined_ns", "coverage_factor"),
        *("expanded_ns", "level", "unknown_lower", "unknown_higher"),
    ]
    csv = [
        [
            *(
                name,
                latency.latency,
                latency.printed_ns,
                latency.lower_ns,
                latency.upper_ns,
                latency.bias_ns,
                latency.combined_ns,
            ),
            *(
                latency.coverage_factor,
                latency.expanded_ns,
                latency.level,
                latency.unknown_lower,
                latency.unknown_higher,
            ),
        ]
        for name, budget in budgets
        for latency in budget.latencies
    ]
    columns = (
        Column("values", numeric=False),
        Column("latency", numeric=False),
        Column("printed [µs]", words.microseconds),
        Column("true latency [µs]"),
        Column("bias [ns]", _signed_ns),
        Column("standard uncertainty [ns]", _ns),
        Column("expanded uncertainty [ns]", _ns),
    )
    rows = [_row(name, latency) for name, budget in budgets for latency in budget.latencies]
    return ReportTable(
        "uncertainty",
        "Printed latencies, and where the true ones lie",
        columns,
        rows,
        csv=(header, csv),
        note="Or lower, or higher: contributions of unknown size have this direction.",
    )


def _error(line: Contribution) -> str:
    """The bounds of the printed minus the true value, in the unit of the contribution."""
    if line.half_width is None or line.middle is None:
        return f"unknown; {line.direction}"
    if not line.half_width and not line.middle:
        return "none"
    if not line.middle:
        return f"± {line.half_width:,.4g} {line.unit}"
    return f"{line.middle - line.half_width:,.4g} to {line.middle + line.half_width:,.4g} {line.unit}"


def _contributions(number: int, name: str, budget: UncertaintyBudget) -> ReportTable:
    """Lines of one budget; a column of standard uncertainties for each latency."""
    of_latency = [{line.source: line for line in latency.contributions} for latency in budget.latencies]
    lines = {source: line for latency in of_latency for source, line in latency.items()}
    rows: list[list[Any]] = [
        [
            *(source, line.basis, _NO_VALUE if line.basis is Basis.UNKNOWN else line.evaluation),
            *(line.distribution if line.half_width else _NO_VALUE, _error(line)),
            *(latency[source].standard_ns if source in latency else 0.0 for latency in of_latency),
        ]
        for source, line in lines.items()
    ]
    combined = ["combined", "", "", "", "", *(latency.combined_ns for latency in budget.latencies)]
    csv_rows = [
        [
            *(
                latency.latency,
                line.source,
                line.basis,
                line.evaluation,
                line.distribution,
                line.half_width,
                line.middle,
            ),
            *(line.unit, line.divisor, line.sensitivity_ns, line.standard_ns, line.bias_ns, line.direction),
        ]
        for latency in budget.latencies
        for line in latency.contributions
    ]
    header = [
        *("latency", "source", "basis", "type", "distribution", "half_width", "middle", "unit", "divisor"),
        *("sensitivity_ns", "standard_ns", "bias_ns", "direction"),
    ]
    columns = (
        *(Column(title, numeric=False) for title in _DETAILS),
        *(Column(latency.latency, _ns) for latency in budget.latencies),
    )
    return ReportTable(
        f"uncertainty-{number}",
        f"{name}: standard uncertainty in ns of each latency, by source",
        columns,
        [*rows, combined],
        csv=(header, csv_rows),
    )


def _entries(context: Context) -> Sequence[SeriesEntry]:
    return (*context.entries, *context.ways)


def section(context: Context) -> Section | None:
    budgets = [
        (entry.name, budget) for entry in _entries(context) if (budget := budget_of(entry.kind.all_cpus)).latencies
    ]
    if not budgets:
        return None
    folded = [
        Folded(f"Contributions: {name}", [_contributions(number, name, budget)])
        for number, (name, budget) in enumerate(budgets, start=1)
    ]
    return Section(
        "uncertainty",
        "Measurement uncertainty",
        f"The true latency lies in the given interval (expanded uncertainty, k = {COVERAGE_FACTOR:g}, at least "
        f"{words.percent(LEVEL)}), as far as the contributions are known. The bias is the expected printed minus true "
        "latency; it is not subtracted. How far other runs may differ is not part of it.",
        [_summary(budgets), *folded],
    )
