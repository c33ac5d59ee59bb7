# SPDX-License-Identifier: GPL-2.0-or-later
"""Test plan: duration until a verdict, for misses that are assumed or that a run had."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastenough import words
from fastenough.analysis import judge
from fastenough.analysis.assessment import Judgment, StatedMaximum
from fastenough.analysis.power import ExpectedMisses, PlannedVerdict, PlanQuestion, expected_misses
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.recording import Recording

_HOUR_NS = 3600 * 10**9
_ASSUMED = (0.0, 0.5)
"""Rates of misses, in units of the allowed rate, where nothing is expected."""


@dataclass(frozen=True)
class SeenMisses:
    """What the expected misses of a plan were taken from: one CPU of a run, the one with the highest rate."""

    run: str
    probe: str
    cpu: int | None
    n: int
    misses: int
    disturbances: int
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class DurationPlan:
    """Durations per CPU, load and board until a verdict, for each kind of expected misses."""

    requirement: Requirement
    period_ns: int
    boards: int
    basis: SeenMisses | None
    verdicts: tuple[PlannedVerdict, ...]


def plan_assumed(required: Requirement, period_ns: int, boards: int = 1, per_hour: float | None = None) -> DurationPlan:
    """The plan for ``per_hour`` misses; None: for no misses, and for half of what is allowed.

    Disturbances are single misses, and as long as the longest burst that is declared.  Raises BadInput for more misses
    than activations.
    """
    if per_hour is None:
        rates: Sequence[float] = [share * required.miss_rate for share in _ASSUMED[: 2 if required.miss_rate else 1]]
    else:
        rates = [_rate_of(per_hour, period_ns)]
    expected = [
        ExpectedMisses(rate, burst, float(burst))
        for rate in rates
        for burst in _bursts(required.longest_burst if rate and required.miss_rate else None)
    ]
    return _plan(required, period_ns, boards, None, expected)


def _rate_of(per_hour: float, period_ns: int) -> float:
    if not math.isfinite(per_hour) or per_hour < 0:
        raise BadInput(f"--expect {per_hour:g} is no number of misses per hour; use 0 or more, or a run of the store")
    activations = _HOUR_NS / period_ns
    if per_hour > activations:
        raise BadInput(
            f"--expect {per_hour:g} misses per hour exceeds the {activations:,.0f} activations per hour at an interval "
            f"of {words.exact_time(period_ns)}; use fewer misses or a shorter --interval"
        )
    return per_hour / activations


def _bursts(*others: int | None) -> list[int]:
    return sorted({1, *(burst for burst in others if burst is not None)})


def plan_from_run(required: Requirement, recording: Recording, boards: int = 1) -> DurationPlan:
    """The plan for misses as often as in this run: independent ones, and in disturbances as long as its own.

    Raises BadInput for a run that cannot be trusted or that has no latency and no period.
    """
    judgment, worst = _worst_cpu(recording, required)
    period_ns = _period_ns(recording, worst)
    basis = SeenMisses(
        recording.run_id,
        judgment.probe,
        worst.cpus[0] if worst.cpus else None,
        worst.n,
        worst.exceeded,
        worst.disturbances[1],
        tuple(_cautions(worst, required)),
    )
    independent = ExpectedMisses(worst.exceeded / worst.n)
    expected = [independent]
    if independent.rate:
        seen = expected_misses(worst, exceeded=worst.exceeded, number=worst.disturbances[1], causes=worst.clusters)
        expected += [seen] if seen != independent else []
    return _plan(required, period_ns, boards, basis, expected)


def _worst_cpu(recording: Recording, required: Requirement) -> tuple[Judgment, StatedMaximum]:
    assessment = judge([recording], required)
    judgment = next(iter(assessment.judgments), None)
    if assessment.emulated:
        raise BadInput(f"run {recording.run_id} is of an emulated machine, whose timing is not meaningful")
    if judgment is None or judgment.verdict is Verdict.BROKEN or not any(cpu.n for cpu in judgment.evidence):
        reason = next(iter(assessment.reasons), "it contains no latency data")
        raise BadInput(f"run {recording.run_id} cannot be planned from: {reason}")
    return judgment, max((cpu for cpu in judgment.evidence if cpu.n), key=lambda cpu: cpu.exceeded / cpu.n)


def _period_ns(recording: Recording, worst: StatedMaximum) -> int:
    """Period of the act on the worst CPU; for an act without one, the mean time from one activation to the next."""
    periods = {
        series.period_ns
        for series in recording.series
        if series.name == worst.series and (not worst.cpus or series.cpu in worst.cpus)
    }
    period_ns = next((period_ns for period_ns in periods if period_ns), round(worst.duration_ns / worst.n))
    if period_ns <= 0:
        raise BadInput(f"run {recording.run_id} states no period and no duration; give --expect as misses per hour")
    return period_ns


def _cautions(worst: StatedMaximum, required: Requirement) -> Iterator[str]:
    if not worst.exceeded:
        yield (
            f"no misses in {words.counted(worst.n, 'activation')} exclude only disturbances that come more often than "
            f"once in {words.at_least(worst.every_ns)}"
        )
    if worst.scale_ns:
        yield (
            f"disturbances up to {words.duration(words.round_up(worst.scale_ns))} apart depend on each other and are "
            "planned as clusters"
        )
    if not worst.steady:
        yield "the rate of misses changed during this run, so no single rate applies"
    declared = required.longest_burst
    if declared is not None and worst.longest > declared:
        yield (
            f"one disturbance of this run may have delayed {words.counted(worst.longest, 'activation')}; the declared "
            f"longest burst is {words.number(declared)}"
        )


def _plan(
    required: Requirement,
    period_ns: int,
    boards: int,
    basis: SeenMisses | None,
    expected: Sequence[ExpectedMisses],
) -> DurationPlan:
    verdicts = (PlanQuestion(required, misses, period_ns).answer() for misses in expected)
    return DurationPlan(required, period_ns, boards, basis, tuple(verdicts))
