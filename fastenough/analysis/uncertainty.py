# SPDX-License-Identifier: GPL-2.0-or-later
"""Uncertainty budgets of printed latencies (JCGM 100:2008; docs/method.md, "Measurement uncertainty").

A budget is about the measured values themselves.  How far other runs may differ is stated elsewhere: by the intervals
of quantiles, and by the bound on the rate of disturbances above the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fastenough import words
from fastenough.analysis.differences import kind_text
from fastenough.analysis.error_sources import (
    SOURCES,
    Basis,
    Direction,
    ErrorBound,
    MeasuredBy,
    Printed,
    measured_by,
)
from fastenough.analysis.measures import QUANTILES, quantile_name, quantile_range
from fastenough.analysis.merged import Merged, Part, grouped, judged_series, load_name, merge_samples
from fastenough.model import Outcome, Requirement
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor

COVERAGE_FACTOR = 2.0
LEVEL = 0.95
"""What k = 2 covers at least, of sums of rectangular distributions."""
DIVISOR = math.sqrt(3.0)
"""Half width of a rectangular distribution over its standard deviation."""
MAXIMUM = "maximum"


@dataclass(frozen=True)
class Contribution:
    """One line of a budget.  The error is the printed latency minus the true one; None: unknown.

    ``half_width`` and ``middle`` of its bounds are in ``unit``, of ``sensitivity_ns`` each; ``bias_ns`` is the middle
    in ns.  ``varies``: the error is another one in each value; such contributions add up linearly.
    """

    source: str
    basis: Basis
    evaluation: str
    distribution: str
    half_width: float | None
    middle: float | None
    unit: str
    divisor: float
    sensitivity_ns: float
    standard_ns: float | None
    bias_ns: float | None
    direction: Direction
    varies: bool


@dataclass(frozen=True)
class LatencyUncertainty:
    """The budget of one printed latency.

    ``bias_ns``: the printed latency minus the expected true one; it is not subtracted.  The true latency lies between
    ``lower_ns`` and ``upper_ns`` at ``level``, as far as the contributions are known: unknown ones may make it lower
    (``unknown_lower``) or higher (``unknown_higher``).
    """

    latency: str
    printed_ns: float
    bias_ns: float
    combined_ns: float
    coverage_factor: float
    expanded_ns: float
    level: float
    lower_ns: float
    upper_ns: float
    unknown_lower: bool
    unknown_higher: bool
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True)
class UncertaintyBudget:
    """The budgets of all printed latencies of one kind of series, all CPUs combined."""

    series: str
    probe: str
    implementation: str
    load: str | None
    cpus: tuple[int, ...]
    run_ids: tuple[str, ...]
    latencies: tuple[LatencyUncertainty, ...]


def budget_of(values: Merged) -> UncertaintyBudget:
    """The budget of merged values: minimum, quantiles that are known, maximum; no latencies without values."""
    ways = _ways(values.parts, values.unit_ns)
    head = values.parts[0][0].head
    return UncertaintyBudget(
        values.name,
        head.probe,
        head.implementation,
        load_name(values.parts[0][0]),
        values.cpus,
        values.run_ids,
        tuple(_combined(printed, _bounds(ways, printed)) for printed in _printed(values)),
    )


def budgets_of(recordings: Iterable[Recording]) -> tuple[UncertaintyBudget, ...]:
    """The budgets of all judged kinds of series; those of the monitor and of runs without values have none."""
    measured = [
        recording
        for recording in recordings
        if recording.outcome is not Outcome.NOT_APPLICABLE
        and recording.damage is None
        and not is_monitor(recording.head)
    ]
    return tuple(
        budget
        for group in grouped(measured)
        for values in _judged_kinds(group)
        if (budget := budget_of(values)).latencies
    )


def _judged_kinds(recordings: Sequence[Recording]) -> Iterator[Merged]:
    parts: dict[str, list[Part]] = {}
    for recording in recordings:
        for series in judged_series(recording):
            parts.setdefault(kind_text(recording, series), []).append((recording, series))
    return map(merge_samples, parts.values())


def _printed(values: Merged) -> Iterator[Printed]:
    """Each latency that a report prints, with the range of its bucket."""
    minimum, maximum_ns = values.histogram.minimum, values.maximum_ns
    if minimum is None or maximum_ns is None:
        return
    minimum_ns = minimum * values.unit_ns
    if values.known.minimum:
        yield Printed("minimum", minimum_ns, minimum_ns)
    for quantile in QUANTILES:
        edges_ns = quantile_range(values, quantile)
        if edges_ns is not None:
            least_ns, value_ns = edges_ns
            yield Printed(quantile_name(quantile), value_ns, least_ns)
    if values.known.maximum:
        yield Printed(MAXIMUM, maximum_ns, maximum_ns)


def _ways(parts: Iterable[Part], unit_ns: float) -> list[MeasuredBy]:
    """How the parts were measured, each way once."""
    return list(dict.fromkeys(measured_by(recording, series, unit_ns) for recording, series in parts))


def _bounds(ways: Sequence[MeasuredBy], printed: Printed) -> list[ErrorBound]:
    """The bounds that hold for values measured in any of these ways, one for each source."""
    by_source: dict[str, list[ErrorBound]] = {}
    for source in SOURCES:
        for by in ways:
            for bound in source(by, printed):
                by_source.setdefault(bound.source, []).append(bound.symmetric() if by.two_sided else bound)
    return [_joined(bounds, everywhere=len(bounds) == len(ways)) for bounds in by_source.values()]


def _joined(bounds: Sequence[ErrorBound], *, everywhere: bool) -> ErrorBound:
    joined = bounds[0]
    for bound in bounds[1:]:
        joined = joined.joined(bound)
    return joined if everywhere else joined.with_zero()


def _contribution(bound: ErrorBound) -> Contribution:
    known = bound.low is not None and bound.high is not None
    low, high = (bound.low or 0.0, bound.high or 0.0) if known else (math.nan, math.nan)
    half, middle = (high - low) / 2, (high + low) / 2
    return Contribution(
        source=bound.source,
        basis=bound.basis,
        evaluation=bound.evaluation,
        distribution="rectangular",
        half_width=half if known else None,
        middle=middle if known else None,
        unit=bound.unit,
        divisor=DIVISOR,
        sensitivity_ns=bound.sensitivity_ns,
        standard_ns=half * bound.sensitivity_ns / DIVISOR if known else None,
        bias_ns=middle * bound.sensitivity_ns if known else None,
        direction=bound.direction,
        varies=bound.varies,
    )


def _combined(printed: Printed, bounds: Sequence[ErrorBound]) -> LatencyUncertainty:
    """The law of propagation for a sum; contributions that vary are taken as fully correlated (JCGM 100, 5.2.2)."""
    lines = [_contribution(bound) for bound in bounds]
    varying = sum(line.standard_ns or 0.0 for line in lines if line.varies)
    combined_ns = math.hypot(varying, *(line.standard_ns or 0.0 for line in lines if not line.varies))
    bias_ns = sum(line.bias_ns or 0.0 for line in lines)
    expanded_ns = COVERAGE_FACTOR * combined_ns
    unknown = {line.direction for line in lines if line.standard_ns is None}
    return LatencyUncertainty(
        latency=printed.name,
        printed_ns=printed.value_ns,
        bias_ns=bias_ns,
        combined_ns=combined_ns,
        coverage_factor=COVERAGE_FACTOR,
        expanded_ns=expanded_ns,
        level=LEVEL,
        lower_ns=printed.value_ns - bias_ns - expanded_ns,
        upper_ns=printed.value_ns - bias_ns + expanded_ns,
        unknown_lower=bool(unknown & {Direction.GREATER, Direction.EITHER}),
        unknown_higher=bool(unknown & {Direction.SMALLER, Direction.EITHER}),
        contributions=tuple(lines),
    )


def true_interval(latency: LatencyUncertainty) -> str:
    """The interval of the true latency in µs, without the unit, rounded outwards to 10 ns."""
    lower, upper = math.floor(latency.lower_ns / 10) / 100, math.ceil(latency.upper_ns / 10) / 100
    return f"{lower:,.2f} to {upper:,.2f}"


def unknown_text(latency: LatencyUncertainty) -> str:
    """Where unknown contributions may lead: "or lower"; empty without any."""
    return {(True, True): "or beyond", (True, False): "or lower", (False, True): "or higher"}.get(
        (latency.unknown_lower, latency.unknown_higher), ""
    )


def true_text(latency: LatencyUncertainty) -> str:
    """Where the true latency lies: "true value 24.90 to 25.11 µs (k = 2, at least 95 %), or lower: …"."""
    unknown = unknown_text(latency)
    return (
        f"true value {true_interval(latency)} µs (k = {latency.coverage_factor:g}, at least "
        f"{words.percent(latency.level)}){f', {unknown}: some contributions are unknown' if unknown else ''}"
    )


def near_limit(values: Sequence[Merged], requirement: Requirement) -> tuple[int, float, float, bool, bool]:
    """Values whose true latency may be on the other side of the limit than the printed one.

    Returns their number; the greatest distances in ns that a true latency may be above and below a value printed at the
    limit, as far as the contributions are known; and whether unknown ones may make it higher, and lower.  Missed
    periods without a value are none of them: each counts as above the limit.
    """
    count, above_ns, below_ns = 0, 0.0, 0.0
    unknown_higher = unknown_lower = False
    for merged in values:
        at_limit = Printed(MAXIMUM, float(requirement.limit_ns), float(requirement.limit_ns))
        ways = [replace(by, uncharged=False) for by in _ways(merged.parts, merged.unit_ns)]
        uncertainty = _combined(at_limit, _bounds(ways, at_limit))
        above = max(0.0, uncertainty.upper_ns - requirement.limit_ns)
        below = max(0.0, requirement.limit_ns - uncertainty.lower_ns)
        possibly = merged.exceeded(requirement.limit_ns - above)[1]
        surely = merged.exceeded(requirement.limit_ns + below)[0]
        count, above_ns, below_ns = count + possibly - surely, max(above_ns, above), max(below_ns, below)
        unknown_higher = unknown_higher or uncertainty.unknown_higher
        unknown_lower = unknown_lower or uncertainty.unknown_lower
    return count, above_ns, below_ns, unknown_higher, unknown_lower
