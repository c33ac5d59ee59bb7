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
from fastenough.analysis.dependence import PIECES_SUPPORTED
from fastenough.analysis.machine import steal_text
from fastenough.analysis.merged import Merged, cpus_not_measured, judged_series, merge_samples
from fastenough.model import Requirement, Series, Verdict
from fastenough.recording import Recording

UNPLANNED_SHARE = 0.05
"""Share of the planned activations that may be absent: threads begin after the run and end before it."""


@dataclass(frozen=True)
class Evidence:
    """Runs of one key whose data can be trusted, and what they show per CPU and kind of series.

    ``failing``: those of which it is shown, among all that are judged together, that they exceed what is allowed.
    """

    recordings: list[Recording]
    requirement: Requirement
    minimum_duration_ns: int
    shown: list[CpuEvidence]
    failing: tuple[CpuEvidence, ...] = ()

    @property
    def undecided(self) -> list[CpuEvidence]:
        """Neither within what is allowed at the limit nor shown to exceed it."""
        return [one for one in self.shown if not one.within_at_limit and one not in self.failing]

    def where(self, some: Sequence[CpuEvidence]) -> str:
        """Names the first of these, and how many there are beside it."""
        several_kinds = len({one.values.name for one in self.shown}) > 1
        first = some[0]
        parts = [first.values.name] if several_kinds or not first.values.cpus else []
        parts += [f"CPU {cpu}" for cpu in first.values.cpus]
        parts += [] if first.merged else [f"run {first.values.run_ids[0]} (its runs differ too much to be merged)"]
        more = f" (and {len(some) - 1} more)" if len(some) > 1 else ""
        return f"on {', '.join(parts)}{more}"

    def place(self, some: Sequence[CpuEvidence]) -> str:
        """The same in fewer words where it is all of them."""
        every = len(some) == len(self.shown) > 1 and not cpus_not_measured(self.recordings)
        return "on each CPU" if every else self.where(some)


def _within_limit(evidence: Evidence) -> Iterator[CheckFinding]:
    failing = sorted(evidence.failing, key=lambda one: one.seen.surely / one.seen.n, reverse=True)
    if failing:
        yield _too_late(evidence, failing)
    rate = evidence.requirement.miss_rate
    astride = [one for one in evidence.undecided if one.seen.surely <= rate * one.seen.n < one.seen.possibly]
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
    late = words.number(first.seen.surely)
    worst_ns = max(one.values.maximum_ns or 0.0 for one in failing)
    shown = (
        "none allowed"
        if allowed == 0
        else f"{words.rate(allowed)} allowed, exceeded at {words.percent(first.confidence)} confidence"
    )
    return CheckFinding(
        Verdict.FAIL,
        f"{late} of {words.counted(first.seen.n, 'activation')} {evidence.where(failing)} "
        f"exceeded {words.exact_time(evidence.requirement.limit_ns)}; {shown} "
        f"(maximum {words.latency(worst_ns)})",
    )


def _never_shown(evidence: Evidence) -> Iterator[CheckFinding]:
    """For never: nothing above the limit, for so long that a disturbance as often as declared would have been seen."""
    lacking = [one for one in evidence.undecided if one.never and not one.seen.possibly]
    if not lacking:
        return
    weakest = min(lacking, key=lambda one: (one.dense, one.seen.time_ns))
    wanted_ns = evidence.requirement.return_time_ns
    text = f"{evidence.place(lacking)}, {wording.statement(weakest)}"
    if not weakest.dense:
        more = weakest.activations_for_never - weakest.seen.n
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f'{text}; {words.counted(weakest.seen.n, "activation")} are too few for "never"',
            f"take {words.counted(words.round_up(more), 'more sample')} on each CPU",
            more,
        )
        return
    needed_ns = wanted_ns * sequential.unseen_upper(weakest.confidence)
    more_ns = float(max(1, words.round_up(needed_ns - weakest.seen.time_ns)))
    yield CheckFinding(
        Verdict.INCONCLUSIVE,
        f'{text}; "never" requires at most 1 disturbance per {words.duration(wanted_ns)} (--return-time)',
        f"measure {words.duration(more_ns)} longer under this load",
        math.ceil(more_ns / (weakest.values.period_ns or more_ns)),
        more_ns,
    )


def _rate_shown(evidence: Evidence) -> Iterator[CheckFinding]:
    """Enough disturbances for a rate: its upper bound must lie within what is allowed."""
    lacking = [
        one for one in evidence.undecided if one.upper is not None and one.steady and one.resolved and not one.never
    ]
    if lacking:
        weakest = max(lacking, key=lambda one: one.upper or 0.0)
        text = f"{evidence.place(lacking)}, {wording.rate_text(weakest)}; {_allowed(evidence)}"
        yield _settled(
            weakest,
            text,
            "the measured rate is too close to the allowed rate for any reasonable number of samples; "
            "choose a longer limit or a higher miss rate",
        )


def _disturbances_shown(evidence: Evidence) -> Iterator[CheckFinding]:
    """Fewer than ten disturbances: a rate follows only from a longest burst that somebody declares."""
    lacking = [one for one in evidence.undecided if one.upper is None and not one.never and one.resolved]
    for refuted in (True, False):
        some = [one for one in lacking if one.refuted is refuted]
        if some:
            weakest = max(some, key=lambda one: (one.seen.most, -one.seen.n))
            yield _refuted(evidence, weakest, some) if refuted else _too_few(evidence, weakest, some)


def _refuted(evidence: Evidence, weakest: CpuEvidence, some: Sequence[CpuEvidence]) -> CheckFinding:
    seen = weakest.seen
    what = (
        "one disturbance"
        if seen.longest > (weakest.requirement.longest_burst or 0)
        else f"disturbances up to {words.duration(words.round_up(seen.scale_ns))} apart depend on each other, and one "
        "cluster of them"
    )
    return CheckFinding(
        Verdict.INCONCLUSIVE,
        f"{evidence.where(some)}, {what} may have delayed {words.counted(seen.largest, 'activation')}; the declared "
        f"longest burst is {weakest.requirement.longest_burst}",
        "find the cause; a longest burst chosen to suit these runs is no evidence",
    )


def _hanging_together(shown: CpuEvidence) -> str:
    """Why disturbances that may be many are no more than a few for a rate."""
    if shown.seen.most < clusters.LEAST_DISTURBANCES:
        return ""
    few = int(shown.seen.independent)
    return (
        f"these are so close together that they count as {few}; "
        if few
        else "their distribution over time is unknown; "
    )


_TO_BE_SEEN = (
    f"measure until {clusters.LEAST_DISTURBANCES} disturbances were recorded, or require that the limit is "
    "never exceeded, within a return time (--miss-rate 0 --return-time)"
)


def _too_few(evidence: Evidence, weakest: CpuEvidence, some: Sequence[CpuEvidence]) -> CheckFinding:
    text = f"{evidence.place(some)}, {wording.statement(weakest)}; {_allowed(evidence)}"
    if weakest.needed is None:
        text += (
            f"; {_hanging_together(weakest)}fewer than {clusters.LEAST_DISTURBANCES} disturbances: no rate can be "
            "derived (pass --longest-burst if the longest is known)"
        )
    return _settled(weakest, text, _TO_BE_SEEN)


def _allowed(evidence: Evidence) -> str:
    return f"{words.rate(evidence.requirement.miss_rate)} allowed"


def _settled(weakest: CpuEvidence, text: str, never: str) -> CheckFinding:
    """INCONCLUSIVE, with the number of samples that decides; ``never``: what to do where no number does."""
    needed = weakest.deciding
    if needed is None:
        return CheckFinding(Verdict.INCONCLUSIVE, text, never)
    more = max(1, needed - weakest.seen.n)
    period_ns = weakest.values.period_ns
    more_ns = None if period_ns is None else float(more * period_ns)
    how_long = "" if more_ns is None else f" ({words.duration(words.round_up(more_ns))} more)"
    settle = f"take about {words.counted(words.round_up(more), 'more sample')} on each CPU{how_long}"
    return CheckFinding(Verdict.INCONCLUSIVE, text, settle, more, more_ns)


def _steady(evidence: Evidence) -> Iterator[CheckFinding]:
    """What changes while it is measured has no one rate; bursts alone do not make it so."""
    changing = [one for one in evidence.shown if not one.steady]
    if changing:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{evidence.where(changing)}, the rate of exceedances changed during the measurement (not stationary, test "
            "at 1 %), so no single rate applies",
            "find what changed (see latency over time in the report), or measure through many such changes",
        )


def _resolved(evidence: Evidence) -> Iterator[CheckFinding]:
    """Disturbances that depend on each other over a great part of what was measured are too few clusters for a rate."""
    lasting = [one for one in evidence.shown if one.seen.long_memory and not one.resolved]
    if lasting:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{evidence.where(lasting)}, the rate at which lower values are exceeded varies over times as long as "
            "the measurement (long memory); that of the limit may do so, too, and is then not bounded",
            "find what varies (see latency over time in the report), or measure through many such changes",
        )
    some = [one for one in evidence.shown if not one.resolved and one not in lasting]
    if some:
        longest_ns = max(one.seen.scale_ns for one in some)
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{evidence.where(some)}, disturbances up to "
            f"{words.duration(words.round_up(longest_ns))} apart depend on each other (test at 1 %); "
            "the measurement is too short to bound their rate",
            f"measure at least {words.duration(words.round_up(longest_ns * PIECES_SUPPORTED))} under this "
            "load, or find their cause",
        )


def _higher_limits(evidence: Evidence) -> Iterator[CheckFinding]:
    """What is met at a limit must be met at each higher one; else the limit could be chosen after looking."""
    some = [one.higher for one in evidence.shown if one.higher is not None]
    if not some:
        return
    weakest = max(some, key=lambda one: one.seen.events)
    above = replace(evidence, shown=[weakest], failing=())
    for check in (_rate_shown, _disturbances_shown, _steady, _resolved):
        for finding in check(above):
            where = f"at the higher limit {words.exact_time(weakest.requirement.limit_ns)}"
            yield replace(finding, text=f"{where}, where a PASS needs the same evidence: {finding.text}")


def _long_enough(evidence: Evidence) -> Iterator[CheckFinding]:
    duration_ns = sum(recording.duration_ns for recording in evidence.recordings)
    wanted_ns = evidence.minimum_duration_ns
    if duration_ns < wanted_ns:
        more_ns = wanted_ns - duration_ns
        measured = f"{words.duration(duration_ns)} measured" if duration_ns else "measured time not stated"
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{measured}; at least {words.duration(wanted_ns)} required",
            f"measure {words.duration(more_ns)} longer",
            more_ns=float(more_ns),
        )


def _as_planned(evidence: Evidence) -> Iterator[CheckFinding]:
    """Who stops when it looks good errs more often than stated: a run is judged when it is as long as was planned."""
    for recording in evidence.recordings:
        planned = recording.head.planned_n
        held = min(
            (recording.totals[series.id].total + recording.missed(series.id) for series in judged_series(recording)),
            default=0,
        )
        if planned is not None and held < (1 - UNPLANNED_SHARE) * planned:
            yield CheckFinding(
                Verdict.INCONCLUSIVE,
                f"run {recording.run_id} ended after {words.number(held)} of "
                f"{words.number(planned)} planned activations",
                "run it again to the planned end",
            )


def _own_machine(evidence: Evidence) -> Iterator[CheckFinding]:
    """On a machine whose time a hypervisor takes, the maxima seen are the hypervisor's, and not the worst."""
    if evidence.requirement.miss_rate == 0 and steal_text(evidence.recordings) is not None:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            "no worst-case verdict in a virtual machine: the host may pause it unseen (steal)",
            "measure on bare metal, or on a host that takes no time from the guest",
        )


EVIDENCE_CHECKS: tuple[Callable[[Evidence], Iterator[CheckFinding]], ...] = (
    _within_limit,
    _never_shown,
    _rate_shown,
    _disturbances_shown,
    _steady,
    _resolved,
    _higher_limits,
    _long_enough,
    _as_planned,
    _own_machine,
)


def merged_per_cpu(recordings: Sequence[Recording]) -> list[Merged]:
    """The judged series of runs of one key, merged per kind and CPU."""
    groups: dict[str, list[tuple[Recording, Series]]] = {}
    for recording in recordings:
        for series in judged_series(recording):
            label = repr((series.name, series.cpu, sorted(series.labels.items())))
            groups.setdefault(label, []).append((recording, series))
    return [merge_samples(parts) for parts in groups.values()]


def evidence_of(
    recordings: list[Recording],
    merged: Sequence[Merged],
    requirement: Requirement,
    minimum_duration_ns: int,
    confidence: float,
) -> Evidence:
    """What runs of one key show whose data can be trusted, merged per CPU; ``confidence``: of each bound."""
    shown = [one for values in merged for one in evidence_per_cpu(values, requirement, confidence)]
    return Evidence(recordings, requirement, minimum_duration_ns, shown)


def stated(one: CpuEvidence) -> StatedMaximum:
    """The same as plain values, for reports and other programs."""
    seen = one.seen
    return StatedMaximum(
        one.values.name,
        one.values.cpus,
        one.values.run_ids,
        seen.n,
        seen.time_ns,
        seen.possibly,
        (seen.least, seen.most),
        seen.longest,
        seen.longest_run,
        seen.independent,
        seen.effective_n,
        one.upper,
        one.every_ns,
        seen.scale_ns,
        seen.clusters.most,
        one.p_value,
        one.steady,
        one.within,
        one.rests_on_burst,
        seen.source.value,
        one.confidence,
        wording.statement(one) if one.upper is None else wording.rate_text(one),
    )


def with_failing(together: Sequence[Evidence], confidence: float) -> list[Evidence]:
    """The same, each with what fails of it: Holm's method over every CPU and load that is judged together."""
    every = [one for evidence in together for one in evidence.shown]
    rejected = {
        id(one)
        for one, fails in zip(every, clusters.holm([one.p_value for one in every], 1.0 - confidence), strict=True)
        if fails
    }
    return [
        replace(evidence, failing=tuple(one for one in evidence.shown if id(one) in rejected)) for evidence in together
    ]


def findings_of(evidence: Evidence) -> list[CheckFinding]:
    """What every check of the list finds."""
    return [finding for check in EVIDENCE_CHECKS for finding in check(evidence)]
