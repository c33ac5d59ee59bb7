# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits on growth over nights: the allowed quantile with its bounds, the exceedances of a run, and the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fastenough import words
from fastenough.analysis.bootstrap import ResampledQuantiles
from fastenough.analysis.clusters import size_at_all_scales
from fastenough.analysis.compare import Sides, sides_of
from fastenough.analysis.disturbances import exceedances_over_time
from fastenough.analysis.gate import BaselinePair, Growth, Limit, LimitResult, subject_of, unknown_quantile
from fastenough.analysis.machine import is_emulated
from fastenough.analysis.nights import (
    NightsEvidence,
    RunExceedances,
    error_of_baseline,
    evidence_of,
    nights_of,
)
from fastenough.model import BadInput, Verdict
from fastenough.recording import Recording

_MOST_EVIDENCE = 1e6
"""Greatest evidence that is printed as a number."""


@dataclass(frozen=True)
class NightsQuestion:
    """A limit on growth for one series of runs, compared with the baseline.

    ``limits_ns``: lower and upper bound of the allowed quantile, None where the baseline is too short.  ``size``: mean
    size of the baseline's clusters above its quantile.  ``tests``: so many of them are judged together.
    """

    limit: Limit
    growth: Growth
    pair: BaselinePair
    sides: Sides
    limits_ns: tuple[float, float] | None
    size: float
    tests: int


@dataclass(frozen=True)
class NightsData:
    """The runs of a question, in the order in which they were stored.

    ``begin``: where the evidence begins, as text.  ``against``: the most severe finding of the runs.
    """

    runs: Sequence[RunExceedances]
    begin: str
    against: tuple[Verdict, str] | None = None
    duration_ns: int = 0


def nights_questions(limits: Sequence[Limit], pairs: Sequence[BaselinePair]) -> list[NightsQuestion]:
    """Each limit on growth, for each judged series that it applies to."""
    applicable = [
        (limit, limit.criterion, pair, sides)
        for limit in limits
        if isinstance(limit.criterion, Growth)
        for pair in pairs
        if limit.is_for(pair.runs[0])
        for sides in pair.sides
    ]
    return [
        NightsQuestion(
            limit,
            growth,
            pair,
            sides,
            allowed_quantile(sides.base.of_activations, growth, error_of_baseline(growth.confidence, len(applicable))),
            _size(sides.base, sides.base.value_ns(growth.quantile)),
            len(applicable),
        )
        for limit, growth, pair, sides in applicable
    ]


def allowed_quantile(base: ResampledQuantiles, growth: Growth, error: float) -> tuple[float, float] | None:
    """Bounds of the baseline's quantile plus the allowed growth, in ns, each with this one-sided error; None if the
    baseline is too short.  The upper bound is infinite if it is among missed periods without a value."""
    edges = base.edges(growth.quantile)
    if edges is None or (base.value_ns(growth.quantile) is None and not base.is_missed(growth.quantile)):
        return None
    lower, upper = map(growth.allowed_ns, edges.interval(1 - 2 * error))
    return lower, upper


def _size(values: ResampledQuantiles, limit_ns: float | None) -> float:
    """Mean size of clusters of values above a limit."""
    return 1.0 if limit_ns is None else size_at_all_scales(exceedances_over_time(values.merged, limit_ns))


def exceedances_of(question: NightsQuestion, run: Recording) -> RunExceedances | None:
    """Values of a run above the allowed quantile, and its missed periods without a value; None if it lacks the
    series."""
    try:
        _, all_sides = sides_of(question.pair.baseline, [run])
    except BadInput:
        return None
    values = next((sides.other for sides in all_sides if sides.name == question.sides.name), None)
    if values is None or question.limits_ns is None or not values.merged.judged:
        return None
    surely, possibly = values.above(question.growth.quantile, question.limits_ns)
    missed = values.merged.missed_uncharged
    surely, possibly = surely + (missed if math.isfinite(question.limits_ns[1]) else 0), possibly + missed
    size = max(question.size, _size(values, question.limits_ns[0]))
    return RunExceedances(run.run_id, run.head.begin.wall_ns, values.merged.judged, surely, possibly, size)


def judge_over_nights(question: NightsQuestion, data: NightsData) -> LimitResult:
    """The result of a limit on growth by the evidence of all nights."""
    growth, allowed = question.growth, 1 - question.growth.quantile
    series = f"{question.sides.name} at {words.percent(growth.quantile)}"
    if not data.runs:
        verdict, reason, evidence = Verdict.INCONCLUSIVE, f"{series}: the baseline is too short for an interval", None
    else:
        evidence = evidence_of(nights_of(data.runs, allowed), allowed, growth.confidence, question.tests)
        verdict, reason = evidence.verdict, f"{series}: {_values(question)}{evidence_text(evidence, data.begin)}"
        if verdict is Verdict.INCONCLUSIVE and (unknown := unknown_quantile(question.sides, growth.quantile)):
            reason += f"; {unknown}"
    run = question.pair.runs[0]
    against = data.against
    if against is not None and (against[0] is Verdict.BROKEN or verdict is Verdict.PASS or is_emulated(run)):
        verdict, reason = against[0], f"{against[1]}; {reason}"
    ids = tuple(measured.run_id for measured in data.runs or question.pair.runs)
    return LimitResult(question.limit, verdict, reason, subject_of(run), ids, data.duration_ns, evidence)


def _values(question: NightsQuestion) -> str:
    base, other = (side.value_ns(question.growth.quantile) for side in question.sides.of_activations)
    return "" if base is None or other is None else f"{words.latency(base)} before, {words.latency(other)} now; "


def evidence_text(evidence: NightsEvidence, begin: str) -> str:
    """How much evidence there is, and at which night it is expected to decide."""
    growth, required = evidence.slower, evidence.slower_required
    text = (
        f"{words.counted(evidence.nights, 'night')} since {begin}: evidence of more growth than allowed "
        f"{_number(growth)} ({_number(required)} decides), of no more {_number(evidence.within)} "
        f"({_number(evidence.within_required)} decides)"
    )
    if evidence.verdict is not Verdict.INCONCLUSIVE:
        return text
    if evidence.expected_night is not None:
        return f"{text}; if further nights are like these, {evidence.expected} at night {evidence.expected_night}"
    first = f"night {evidence.earliest_pass}" if evidence.earliest_pass else "the next 1,000 nights"
    return f"{text}; no trend yet, and no PASS before {first}"


def _number(evidence: float) -> str:
    if evidence > _MOST_EVIDENCE:
        return f"above {_MOST_EVIDENCE:,.0f}"
    return f"{evidence:,.3g}" if evidence < 100 else f"{evidence:,.0f}"
