# SPDX-License-Identifier: GPL-2.0-or-later
"""Merged samples per key and CPU against a requirement: is it met, and is that enough?  One function per check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fastenough import words
from fastenough.analysis import bounds
from fastenough.analysis.assessment import Finding, Minimum
from fastenough.analysis.machine import cpus_not_measured, steal_text
from fastenough.analysis.merged import Merged, judged_series, merge_samples
from fastenough.model import Requirement, Series, Verdict
from fastenough.recording import Recording


@dataclass(frozen=True)
class Evidence:
    """Runs of one key whose data can be trusted, merged per CPU and kind of series."""

    recordings: list[Recording]
    merged: list[Merged]
    requirement: Requirement
    minimum: Minimum

    def where(self, some: Sequence[Merged]) -> str:
        """Names the first of these, and how many there are beside it."""
        several_kinds = len({values.name for values in self.merged}) > 1
        parts = [some[0].name] if several_kinds or not some[0].cpus else []
        parts += [f"CPU {cpu}" for cpu in some[0].cpus]
        more = f" (and {len(some) - 1} more)" if len(some) > 1 else ""
        return f"on {', '.join(parts)}{more}"


def _within_limit(evidence: Evidence) -> Iterator[Finding]:
    requirement = evidence.requirement
    counted = [(values, *values.exceeded(requirement.limit_ns)) for values in evidence.merged if values.judged]
    counted.sort(key=lambda entry: entry[1] / entry[0].judged, reverse=True)
    failed = [values for values, surely, _ in counted if surely > requirement.miss_rate * values.judged]
    if failed:
        yield _too_late(evidence, failed)
    astride = [values for values, surely, possibly in counted
               if surely <= requirement.miss_rate * values.judged < possibly]
    if astride:
        yield Finding(Verdict.INCONCLUSIVE, "the limit lies within a bucket of the histogram, so it cannot be told "
                      f"how many activations {evidence.where(astride)} took longer",
                      "choose a limit at the edge of a bucket, or record with a greater k")


def _too_late(evidence: Evidence, failed: Sequence[Merged]) -> Finding:
    requirement, first = evidence.requirement, failed[0]
    allowed = "none is" if requirement.miss_rate == 0 else f"{words.rate(requirement.miss_rate)} is"
    late = words.number(first.exceeded(requirement.limit_ns)[0])
    worst_ns = max(values.maximum_ns or 0.0 for values in failed)
    return Finding(Verdict.FAIL, f"{late} of {words.counted(first.judged, 'activation')} {evidence.where(failed)} took "
                   f"longer than {words.latency(requirement.limit_ns)}; {allowed} allowed "
                   f"(worst {words.latency(worst_ns)})")


def _rate_shown(evidence: Evidence) -> Iterator[Finding]:
    """The upper confidence bound of the rate must lie within what is allowed (or, for never, within the minimum)."""
    requirement = evidence.requirement
    required = requirement.miss_rate or evidence.minimum.rate
    lacking: list[tuple[float, Merged]] = []
    for values in evidence.merged:
        surely, possibly = values.exceeded(requirement.limit_ns)
        if surely > requirement.miss_rate * values.judged or (requirement.miss_rate == 0 and possibly):
            continue
        upper = bounds.rate_upper(possibly, values.judged, requirement.confidence)
        if upper > required:
            lacking.append((upper, values))
    if lacking:
        lacking.sort(key=lambda entry: entry[0], reverse=True)
        yield _too_few(evidence, lacking[0][0], required, [values for _, values in lacking])


def _too_few(evidence: Evidence, upper: float, required: float, lacking: Sequence[Merged]) -> Finding:
    """``lacking``: those whose bound is too wide, the widest first."""
    requirement, weakest = evidence.requirement, lacking[0]
    every = len(lacking) == len(evidence.merged) > 1 and not cpus_not_measured(evidence.recordings)
    where = "on each CPU" if every else evidence.where(lacking)
    text = (f"{words.counted(weakest.judged, 'activation')} {where} do not exclude a rate of "
            f"{words.rate(upper)} at {words.percent(requirement.confidence)} confidence; "
            f"{words.rate(required)} must be shown")
    seen = weakest.exceeded(requirement.limit_ns)[1] / weakest.judged if weakest.judged else 0.0
    needed = bounds.samples_for_rate(required, seen, requirement.confidence)
    if needed is None:
        return Finding(Verdict.INCONCLUSIVE, text, "the rate seen is the rate allowed: no number of samples shows "
                       "that it is lower; choose a longer limit or a higher miss rate")
    more = max(1, needed - weakest.judged)
    more_ns = None if weakest.period_ns is None else float(more * weakest.period_ns)
    how_long = "" if more_ns is None else f" ({words.duration(words.round_up(more_ns))} more)"
    settle = f"{words.counted(words.round_up(more), 'more sample')} on each CPU{how_long}"
    return Finding(Verdict.INCONCLUSIVE, text, settle, more, more_ns)


def _long_enough(evidence: Evidence) -> Iterator[Finding]:
    duration_ns = sum(recording.duration_ns for recording in evidence.recordings)
    wanted_ns = evidence.minimum.duration_ns
    if duration_ns < wanted_ns:
        more_ns = wanted_ns - duration_ns
        yield Finding(Verdict.INCONCLUSIVE, f"{words.duration(duration_ns)} were measured, at least "
                      f"{words.duration(wanted_ns)} are needed", f"measure {words.duration(more_ns)} longer",
                      more_ns=float(more_ns))


def _own_machine(evidence: Evidence) -> Iterator[Finding]:
    """On a machine whose time a hypervisor takes, the maxima seen are the hypervisor's, and not the worst."""
    if evidence.requirement.miss_rate == 0 and steal_text(evidence.recordings) is not None:
        yield Finding(Verdict.INCONCLUSIVE, "no worst-case verdict on this machine: its hypervisor takes time from it "
                      "(steal), or may, unseen",
                      "measure on the bare machine, or on a host that takes no time from the guest")


EVIDENCE_CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    _within_limit, _rate_shown, _long_enough, _own_machine,
)


def merged_per_cpu(recordings: Sequence[Recording]) -> list[Merged]:
    """The judged series of runs of one key, merged per kind and CPU."""
    groups: dict[str, list[tuple[Recording, Series]]] = {}
    for recording in recordings:
        for series in judged_series(recording):
            label = repr((series.name, series.cpu, sorted(series.labels.items())))
            groups.setdefault(label, []).append((recording, series))
    return [merge_samples(parts) for parts in groups.values()]


def findings_of(recordings: list[Recording], requirement: Requirement, minimum: Minimum) -> list[Finding]:
    """What every check of the list finds in runs of one key whose data can be trusted."""
    evidence = Evidence(recordings, merged_per_cpu(recordings), requirement, minimum)
    return [finding for check in EVIDENCE_CHECKS for finding in check(evidence)]
