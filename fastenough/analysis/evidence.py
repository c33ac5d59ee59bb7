# SPDX-License-Identifier: GPL-2.0-or-later
"""Merged samples per key and CPU against a requirement: whether it is met, and whether the evidence suffices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from fastenough import words
from fastenough.analysis import clusters, sequential, wording
from fastenough.analysis.assessment import CheckFinding, StatedMaximum
from fastenough.analysis.cpu_evidence import CpuEvidence, evidence_per_cpu
from fastenough.analysis.dependence import LEAST_INTERVALS, PIECES_SUPPORTED
from fastenough.analysis.disturbances import Disturbances
from fastenough.analysis.machine import VIRTUAL_UNKNOWN, steal_text
from fastenough.analysis.merged import Merged, cpus_not_measured, judged_series, merge_samples
from fastenough.analysis.periods import accounted
from fastenough.analysis.planning import activations_to_decide
from fastenough.model import Requirement, Series, Verdict
from fastenough.recording import Recording

UNPLANNED_SHARE = 0.05
"""Share of the planned time that may be absent: a measurement begins after the run and ends before it."""


@dataclass(frozen=True)
class Evidence:
    """Runs of one key with trusted data, and the evidence of each CPU and kind of series.

    ``failing``: the CPUs shown to exceed the allowed rate when all are judged together.
    """

    recordings: list[Recording]
    requirement: Requirement
    minimum_duration_ns: int
    per_cpu: list[CpuEvidence]
    failing: tuple[CpuEvidence, ...] = ()

    @property
    def undecided(self) -> list[CpuEvidence]:
        """CPUs neither shown to be within the allowed rate at the limit nor shown to exceed it."""
        return [cpu for cpu in self.per_cpu if not cpu.within_at_limit and cpu not in self.failing]

    def where(self, some: Sequence[CpuEvidence]) -> str:
        """The first of these CPUs by name, with the number of the others."""
        several_kinds = len({cpu.values.name for cpu in self.per_cpu}) > 1
        first = some[0]
        parts = [first.values.name] if several_kinds or not first.values.cpus else []
        parts += [f"CPU {number}" for number in first.values.cpus]
        parts += [] if first.merged else [f"run {first.values.run_ids[0]} (its runs differ too much to be merged)"]
        other = "CPU" if first.values.cpus and first.merged and not several_kinds else "series"
        more = f" (and on {words.counted(len(some) - 1, f'more {other}')})" if len(some) > 1 else ""
        return f"on {', '.join(parts)}{more}"

    def place(self, some: Sequence[CpuEvidence]) -> str:
        """As :meth:`where`, or "on each CPU" if these are all."""
        every = len(some) == len(self.per_cpu) > 1 and not cpus_not_measured(self.recordings)
        return "on each CPU" if every else self.where(some)

    def stated(self, some: Sequence[CpuEvidence], statement: str) -> str:
        """A statement on the weakest of these CPUs, which begins with a count unless it has no disturbance."""
        counts = {(cpu.disturbances.most, cpu.disturbances.n) for cpu in some}
        place = self.place(some)
        return f"{place}, {'up to ' if place == 'on each CPU' and len(counts) > 1 else ''}{statement}"


def _within_limit(evidence: Evidence) -> Iterator[CheckFinding]:
    failing = sorted(evidence.failing, key=lambda cpu: cpu.disturbances.surely / cpu.disturbances.n, reverse=True)
    if failing:
        yield _too_late(evidence, failing)
    rate = evidence.requirement.miss_rate
    astride = [
        cpu
        for cpu in evidence.undecided
        if cpu.disturbances.surely <= rate * cpu.disturbances.n < cpu.disturbances.possibly
    ]
    if astride:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            "the limit lies within a bucket of the histogram, so the number of activations above it "
            f"{evidence.where(astride)} is unknown",
            "state the limit before the run, which then counts it exactly (limit=...), or choose a limit at the "
            "edge of a bucket",
        )


def _too_late(evidence: Evidence, failing: Sequence[CpuEvidence]) -> CheckFinding:
    first, allowed = failing[0], evidence.requirement.miss_rate
    at_least = wording.at_least_if(first.values.omitted_count_unknown)
    late = at_least + words.number(first.disturbances.surely)
    of_all = at_least + words.counted(first.disturbances.n, "activation")
    worst_ns = max(cpu.values.maximum_ns or 0.0 for cpu in failing)
    allowance = (
        "none allowed"
        if allowed == 0
        else f"{words.rate(allowed)} allowed, exceeded at {words.percent(first.confidence)} confidence"
    )
    return CheckFinding(
        Verdict.FAIL,
        f"{late} of {of_all} {evidence.where(failing)} "
        f"exceeded {words.exact_time(evidence.requirement.limit_ns)}; {allowance} "
        f"(maximum {words.latency(worst_ns)})",
    )


def _enough_for_never(evidence: Evidence) -> Iterator[CheckFinding]:
    """For "never": nothing above the limit for several return times, the declared mean time between disturbances."""
    lacking = [cpu for cpu in evidence.undecided if cpu.never and not cpu.disturbances.possibly]
    if not lacking:
        return
    weakest = min(lacking, key=lambda cpu: (cpu.dense, cpu.disturbances.time_ns))
    required_ns = evidence.requirement.return_time_ns
    text = f"{evidence.place(lacking)}, {wording.statement(weakest)}"
    if not weakest.dense:
        more = weakest.activations_for_never - weakest.disturbances.n
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f'{text}; {words.counted(weakest.disturbances.n, "activation")} are too few for "never"',
            f"take {words.counted(words.round_up(more), 'more sample')} on each CPU",
            more,
        )
        return
    needed_ns = required_ns * sequential.unseen_upper(weakest.confidence)
    more_ns = float(max(1, words.round_up(needed_ns - weakest.disturbances.time_ns)))
    yield CheckFinding(
        Verdict.INCONCLUSIVE,
        f'{text}; "never" requires at most 1 disturbance per {words.duration(required_ns)} (--return-time)',
        f"measure {words.duration(more_ns)} longer under this load",
        math.ceil(more_ns / (weakest.values.period_ns or more_ns)),
        more_ns,
    )


def _enough_for_rate(evidence: Evidence) -> Iterator[CheckFinding]:
    """With enough disturbances for a rate, its upper bound must be at most the allowed rate."""
    lacking = [
        cpu for cpu in evidence.undecided if cpu.upper is not None and cpu.steady and cpu.resolved and not cpu.never
    ]
    if lacking:
        weakest = max(lacking, key=lambda cpu: cpu.upper or 0.0)
        text = f"{evidence.stated(lacking, wording.rate_text(weakest))}; {_allowed(evidence)}"
        yield _undecided(weakest, text, _no_reasonable_number(weakest))


def _no_reasonable_number(cpu: CpuEvidence) -> str:
    """Next step where no number of samples is likely to decide a rate."""
    if cpu.disturbances.scale_ns:
        apart = words.duration(words.round_up(cpu.disturbances.scale_ns))
        return (
            f"disturbances up to {apart} apart depend on each other, and no reasonable number of samples is likely to "
            "give a verdict; find their cause, or choose a longer limit"
        )
    return (
        "the rate may be too close to the allowed rate for any reasonable number of samples to give a verdict; "
        "choose a longer limit or a higher miss rate"
    )


def _enough_disturbances(evidence: Evidence) -> Iterator[CheckFinding]:
    """With fewer than ten disturbances, a rate follows only from a declared longest burst."""
    lacking = [cpu for cpu in evidence.undecided if cpu.upper is None and not cpu.never and cpu.resolved]
    for refuted in (True, False):
        some = [cpu for cpu in lacking if cpu.refuted is refuted]
        if some:
            weakest = max(some, key=lambda cpu: (cpu.disturbances.most, -cpu.disturbances.n))
            yield _refuted(evidence, weakest, some) if refuted else _too_few(evidence, weakest, some)


def _refuted(evidence: Evidence, weakest: CpuEvidence, some: Sequence[CpuEvidence]) -> CheckFinding:
    disturbances = weakest.disturbances
    subject = (
        "one disturbance"
        if disturbances.longest > (weakest.requirement.longest_burst or 0)
        else f"disturbances up to {words.duration(words.round_up(disturbances.scale_ns))} apart depend on each other, "
        "and one cluster of them"
    )
    return CheckFinding(
        Verdict.INCONCLUSIVE,
        f"{evidence.where(some)}, {subject} may have delayed {words.counted(disturbances.largest, 'activation')}; the "
        f"declared longest burst is {weakest.requirement.longest_burst}",
        "find the cause; a longest burst chosen to suit these runs is no evidence",
    )


def _too_few_text(disturbances: Disturbances) -> str:
    """Why these disturbances are too few for a rate."""
    few = f"fewer than {clusters.LEAST_DISTURBANCES} disturbances"
    if disturbances.most < clusters.LEAST_DISTURBANCES:
        return few
    if disturbances.counts.size < LEAST_INTERVALS:
        return (
            f"their distribution over time is unknown ({words.counted(disturbances.counts.size, 'interval')} recorded, "
            f"at least {LEAST_INTERVALS} required)"
        )
    return f"these are so close together that they count as {int(disturbances.independent)}; {few}"


def _to_be_seen(disturbances: Disturbances) -> str:
    """Next step for a rate, if no number of samples can be named."""
    enough = f"{clusters.LEAST_DISTURBANCES} independent disturbances"
    if disturbances.most >= clusters.LEAST_DISTURBANCES and disturbances.counts.size < LEAST_INTERVALS:
        enough = f"at least {LEAST_INTERVALS} intervals"
    return (
        f"measure until {enough} were recorded, or require that the limit is never exceeded, within a return time "
        "(--miss-rate 0 --return-time)"
    )


def _too_few(evidence: Evidence, weakest: CpuEvidence, some: Sequence[CpuEvidence]) -> CheckFinding:
    text = f"{evidence.stated(some, wording.statement(weakest))}; {_allowed(evidence)}"
    if weakest.requirement.longest_burst is None:
        text += (
            f"; {_too_few_text(weakest.disturbances)}: no rate can be derived (pass --longest-burst if the longest is "
            "known)"
        )
    return _undecided(weakest, text, _to_be_seen(weakest.disturbances))


def _allowed(evidence: Evidence) -> str:
    return f"{words.rate(evidence.requirement.miss_rate)} allowed"


def _undecided(weakest: CpuEvidence, text: str, never: str) -> CheckFinding:
    """INCONCLUSIVE, with the number of samples that decides; ``never``: the next step if no number does."""
    needed = activations_to_decide(weakest)
    if needed is None:
        return CheckFinding(Verdict.INCONCLUSIVE, text, never)
    more = max(1, needed - weakest.disturbances.n)
    period_ns = weakest.values.period_ns
    more_ns = None if period_ns is None else float(more * period_ns)
    how_long = "" if more_ns is None else f" ({words.duration(words.round_up(more_ns))} more)"
    settle = (
        f"take about {words.counted(words.round_up(more), 'more sample')} on each CPU{how_long}; a verdict is then "
        "likely if the rate is as measured, and less likely if it is closer to the allowed rate"
    )
    return CheckFinding(Verdict.INCONCLUSIVE, text, settle, more, more_ns)


def _steady(evidence: Evidence) -> Iterator[CheckFinding]:
    """A rate that changes during the measurement cannot be bounded; bursts alone are no change."""
    changing = [cpu for cpu in evidence.per_cpu if not cpu.steady]
    if changing:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{evidence.where(changing)}, the rate of exceedances changed during the measurement (not stationary, test "
            "at 1 %), so no single rate applies",
            "find what changed (see latency over time in the report), or measure through many such changes",
        )


def _resolved(evidence: Evidence) -> Iterator[CheckFinding]:
    """Disturbances that depend on each other for a great part of the measured time form too few clusters for a rate."""
    lasting = [cpu for cpu in evidence.per_cpu if cpu.disturbances.long_memory and not cpu.resolved]
    if lasting:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{evidence.where(lasting)}, the rate at which lower values are exceeded varies over times as long as "
            "the measurement (long memory); that of the limit may do so, too, and is then not bounded",
            "find what varies (see latency over time in the report), or measure through many such changes",
        )
    some = [cpu for cpu in evidence.per_cpu if not cpu.resolved and cpu not in lasting]
    if some:
        longest_ns = max(cpu.disturbances.scale_ns for cpu in some)
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{evidence.where(some)}, disturbances up to "
            f"{words.duration(words.round_up(longest_ns))} apart depend on each other (test at 1 %); "
            "the measurement is too short to bound their rate",
            f"measure at least {words.duration(words.round_up(longest_ns * PIECES_SUPPORTED))} under this "
            "load, or find their cause",
        )


def _higher_limits(evidence: Evidence) -> Iterator[CheckFinding]:
    """A requirement met at a limit must be met at each higher one, or the limit could be chosen after looking."""
    some = [cpu.higher for cpu in evidence.per_cpu if cpu.higher is not None]
    if not some:
        return
    weakest = max(some, key=lambda cpu: cpu.disturbances.events)
    above = replace(evidence, per_cpu=[weakest], failing=())
    for check in (_enough_for_rate, _enough_disturbances, _steady, _resolved):
        for finding in check(above):
            where = f"at the higher limit {words.exact_time(weakest.requirement.limit_ns)}"
            yield replace(finding, text=f"{where}, where a PASS needs the same evidence: {finding.text}")


def _long_enough(evidence: Evidence) -> Iterator[CheckFinding]:
    duration_ns = sum(recording.duration_ns for recording in evidence.recordings)
    required_ns = evidence.minimum_duration_ns
    if duration_ns < required_ns:
        more_ns = required_ns - duration_ns
        measured = f"{words.duration(duration_ns)} measured" if duration_ns else "measured time not stated"
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{measured}; at least {words.duration(required_ns)} required",
            f"measure {words.duration(more_ns)} longer",
            more_ns=float(more_ns),
        )


def _as_planned(evidence: Evidence) -> Iterator[CheckFinding]:
    """A run is judged at its planned length: stopping when the result looks good would raise the error rate.

    Its time is compared, because relative sleeps make fewer activations; another check compares these with the periods
    that were due.
    """
    for recording in evidence.recordings:
        planned = recording.head.planned_n or 0
        period_ns = max((series.period_ns or 0 for series in recording.series), default=0)
        if recording.duration_ns < (1 - UNPLANNED_SHARE) * planned * period_ns:
            held = min((accounted(recording, series) for series in judged_series(recording)), default=0)
            yield CheckFinding(
                Verdict.INCONCLUSIVE,
                f"run {recording.run_id} ended after {words.number(held)} of "
                f"{words.number(planned)} planned activations",
                "run it again to the planned end",
            )


def _own_machine(evidence: Evidence) -> Iterator[CheckFinding]:
    """If a hypervisor takes CPU time, the maxima are the hypervisor's and do not show the worst case."""
    steal = steal_text(evidence.recordings) if evidence.requirement.miss_rate == 0 else None
    if steal is not None:
        where = "unless a virtual machine is excluded" if steal == VIRTUAL_UNKNOWN else "in a virtual machine"
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"no worst-case verdict {where}: the host may pause it unseen (steal)",
            "measure on bare metal, or on a host that takes no time from the guest",
        )


EVIDENCE_CHECKS: tuple[Callable[[Evidence], Iterator[CheckFinding]], ...] = (
    _within_limit,
    _enough_for_never,
    _enough_for_rate,
    _enough_disturbances,
    _steady,
    _resolved,
    _higher_limits,
    _long_enough,
    _as_planned,
    _own_machine,
)


def merged_per_cpu(recordings: Sequence[Recording], *, unknown_agrees: bool = False) -> list[Merged]:
    """The judged series of runs of one key, merged per kind and CPU.

    ``unknown_agrees``: or of runs that may be of one key, since a value of it is unknown.
    """
    groups: dict[str, list[tuple[Recording, Series]]] = {}
    for recording in recordings:
        for series in judged_series(recording):
            label = repr((series.name, series.cpu, sorted(series.labels.items())))
            groups.setdefault(label, []).append((recording, series))
    return [merge_samples(parts, unknown_agrees=unknown_agrees) for parts in groups.values()]


def evidence_of(
    recordings: list[Recording],
    merged: Sequence[Merged],
    requirement: Requirement,
    minimum_duration_ns: int,
    confidence: float,
) -> Evidence:
    """The evidence of runs of one key with trusted data, merged per CPU; ``confidence``: of each bound."""
    per_cpu = [cpu for values in merged for cpu in evidence_per_cpu(values, requirement, confidence)]
    return Evidence(recordings, requirement, minimum_duration_ns, per_cpu)


def stated_maximum(cpu: CpuEvidence) -> StatedMaximum:
    """The evidence of one CPU as plain values, for reports and other programs."""
    disturbances = cpu.disturbances
    return StatedMaximum(
        series=cpu.values.name,
        cpus=cpu.values.cpus,
        run_ids=cpu.values.run_ids,
        n=disturbances.n,
        duration_ns=disturbances.time_ns,
        exceeded=disturbances.possibly,
        disturbances=(disturbances.least, disturbances.most),
        longest=disturbances.longest,
        longest_run=disturbances.longest_run,
        independent=disturbances.independent,
        effective_n=disturbances.effective_n,
        upper=cpu.upper,
        every_ns=cpu.every_ns,
        scale_ns=disturbances.scale_ns,
        clusters=disturbances.clusters.most,
        p_value=cpu.p_value,
        steady=cpu.steady,
        within=cpu.within,
        declared_burst=cpu.rests_on_burst,
        source=disturbances.source.value,
        confidence=cpu.confidence,
        text=wording.statement(cpu) if cpu.upper is None else wording.rate_text(cpu),
    )


def with_failing(together: Sequence[Evidence], confidence: float) -> list[Evidence]:
    """The evidence with its failing CPUs: Holm's method over all CPUs and loads that are judged together."""
    all_cpus = [cpu for evidence in together for cpu in evidence.per_cpu]
    rejected = {
        id(cpu)
        for cpu, fails in zip(all_cpus, clusters.holm([cpu.p_value for cpu in all_cpus], 1.0 - confidence), strict=True)
        if fails
    }
    return [
        replace(evidence, failing=tuple(cpu for cpu in evidence.per_cpu if id(cpu) in rejected))
        for evidence in together
    ]


def findings_of(evidence: Evidence) -> list[CheckFinding]:
    """The findings of all checks."""
    return [finding for check in EVIDENCE_CHECKS for finding in check(evidence)]
