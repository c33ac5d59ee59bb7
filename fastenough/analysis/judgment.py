# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on a requirement, with its reasons.

The verdict is PASS if no check has a finding.  Each check is one function in the list of :mod:`checks` or of
:mod:`evidence`; each yields findings, and the most severe finding is the verdict:

* BROKEN: the data of a run cannot be trusted; the finding names the damage;
* FAIL: more activations exceed the limit than allowed, at the required confidence;
* INCONCLUSIVE: too little is known; the finding names the next step.

Without a requirement, results are reported without a verdict (``NO_LIMIT``), unless they are BROKEN.

Runs of one key (machine, configuration, load, …) are merged; each CPU is judged by itself, since a task runs on
one, and a good CPU must not hide a bad one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from fastenough import words
from fastenough.analysis import checks, evidence, wording
from fastenough.analysis.assessment import Assessment, CheckFinding, Judgment, RequirementResult
from fastenough.analysis.cpu_evidence import MINIMUM_DURATION_NS
from fastenough.analysis.differences import may_agree, run_values
from fastenough.analysis.distinct import distinct, repetition_cautions
from fastenough.analysis.evidence import Evidence
from fastenough.analysis.keys import parameters_of
from fastenough.analysis.load_coverage import begin_order, coverage_gaps
from fastenough.analysis.machine import identity_cautions, is_emulated
from fastenough.analysis.measures import CONFIDENCE, weakest_bound
from fastenough.analysis.merged import Merged, cpus_not_measured, grouped, judged_series, load_name
from fastenough.analysis.phase_lock import phase_lock_cautions
from fastenough.analysis.series_checks import series_as_measured
from fastenough.analysis.supported import all_supported, overall_supported
from fastenough.analysis.uncertainty import near_limit
from fastenough.model import Outcome, Requirement, Role, Verdict
from fastenough.recording import Recording
from fastenough.recording.head import Head
from fastenough.recording.wakeups import is_monitor

SEVERITY = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NO_LIMIT)
"""From the most severe.  A failure in sound data stands even if other data is damaged; a judged group outweighs a
reported one."""

RequiredGroup = tuple[Requirement | None, list[Recording]]
"""Requirement of runs of one key (None: no requirement), and the runs."""


def _weightiest(verdicts: Sequence[Verdict], otherwise: Verdict) -> Verdict:
    return next((verdict for verdict in SEVERITY if verdict in verdicts), otherwise)


@dataclass(frozen=True)
class _Weighed:
    """Runs of one key: findings of each run, and the evidence of all trusted runs together.

    ``merged``: the judged series of all of them, per kind and CPU.
    """

    requirement: Requirement | None
    recordings: list[Recording]
    merged: list[Merged]
    confidence: float
    findings: list[CheckFinding]
    evidence: Evidence | None


def _with_runs(checked: Sequence[tuple[Recording, list[CheckFinding]]]) -> Iterator[CheckFinding]:
    """Each finding once, with the runs that it is about."""
    runs: dict[CheckFinding, list[str]] = {}
    for recording, findings in checked:
        for finding in findings:
            runs.setdefault(finding, []).append(recording.run_id)
    for finding, ids in runs.items():
        more = f" and {words.counted(len(ids) - 1, 'more run')}" if len(ids) > 1 else ""
        subject = f"all {len(ids)} runs" if 2 < len(ids) == len(checked) else f"run {ids[0]}{more}"
        yield replace(finding, text=f"{subject}: {finding.text}")


def _weigh(required_group: RequiredGroup, minimum_duration_ns: int, confidence: float) -> _Weighed:
    requirement, recordings = required_group
    checked = [(recording, checks.findings_of(recording)) for recording in recordings]
    named = len(recordings) > 1 or recordings[0].damage is not None
    findings = list(_with_runs(checked)) if named else checked[0][1]
    merged = evidence.merged_per_cpu(recordings)
    weighed = _Weighed(requirement, recordings, merged, confidence, findings, None)
    if requirement is None or any(is_emulated(recording) for recording in recordings):
        return weighed
    sound = [
        recording
        for recording, run_findings in checked
        if not checks.without_real_time(recording) and not checks.is_broken(run_findings)
    ]
    if not sound:
        return weighed
    sound_merged = merged if len(sound) == len(recordings) else evidence.merged_per_cpu(sound)
    evidence_of_group = evidence.evidence_of(sound, sound_merged, requirement, minimum_duration_ns, confidence)
    return replace(weighed, evidence=evidence_of_group)


def _with_failing(weighed: Sequence[_Weighed], confidence: float) -> list[_Weighed]:
    """Judge all CPUs and loads together; each is one hypothesis."""
    failing = iter(
        evidence.with_failing([group.evidence for group in weighed if group.evidence is not None], confidence)
    )
    return [group if group.evidence is None else replace(group, evidence=next(failing)) for group in weighed]


def _failures(weighed: Sequence[_Weighed]) -> Iterator[wording.Failure]:
    """Exceedances, activations and maximum of the failing CPUs together, for each kind of runs that has some."""
    for group in weighed:
        failing = () if group.evidence is None else group.evidence.failing
        if failing and group.requirement is not None:
            yield wording.Failure(
                group.recordings[0].head.probe,
                group.requirement,
                sum(cpu.disturbances.surely for cpu in failing),
                sum(cpu.disturbances.n for cpu in failing),
                max(cpu.values.maximum_ns or 0.0 for cpu in failing),
                any(cpu.values.omitted_count_unknown for cpu in failing),
            )


def _group_verdict(findings: Sequence[CheckFinding], requirement: Requirement | None, has_values: bool) -> Verdict:
    """``has_values``: meaningful values were measured, which are reported if nothing is required."""
    verdicts = [finding.verdict for finding in findings]
    if requirement is None and has_values and Verdict.BROKEN not in verdicts:
        return Verdict.NO_LIMIT
    return _weightiest(verdicts, Verdict.PASS if requirement else Verdict.INCONCLUSIVE)


def _supports_limits(weighed: _Weighed) -> bool:
    """Whether limits can rest on these runs: none is BROKEN, and all had the scheduling that they requested."""
    return not checks.is_broken(weighed.findings) and not any(map(checks.without_real_time, weighed.recordings))


def _setup(head: Head) -> tuple[str, ...]:
    return head.board or "", head.configuration.name if head.configuration else "", head.implementation


def _judge_group(weighed: _Weighed) -> Judgment:
    requirement, recordings, merged, group_evidence, confidence = (
        weighed.requirement,
        weighed.recordings,
        weighed.merged,
        weighed.evidence,
        weighed.confidence,
    )
    findings = weighed.findings + ([] if group_evidence is None else evidence.findings_of(group_evidence))
    worst = max(merged, key=lambda values: values.maximum_ns or 0.0, default=None)
    n = sum(values.judged for values in merged)
    has_values = n > 0 and not any(is_emulated(recording) for recording in recordings)
    return Judgment(
        run_ids=tuple(recording.run_id for recording in recordings),
        probe=recordings[0].head.probe,
        load=load_name(recordings[0]),
        verdict=_group_verdict(findings, requirement, has_values),
        findings=tuple(findings),
        maximum_ns=worst.maximum_ns if worst is not None and all(values.known.maximum for values in merged) else None,
        worst_cpu=None if worst is None or not worst.cpus else worst.cpus[0],
        n=n,
        exceeded=0 if requirement is None else sum(values.exceeded(requirement.limit_ns)[0] for values in merged),
        bound=weakest_bound(merged, confidence),
        supported=all_supported(merged, confidence) if _supports_limits(weighed) else (),
        not_measured=tuple(cpus_not_measured(recordings)),
        setup=_setup(recordings[0].head),
        parameters={name: words.part(name, value) for name, value in parameters_of(recordings[0].head).items()},
        requirement=requirement,
        uncharged=sum(values.judged - values.n for values in merged),
        n_is_least=any(values.omitted_count_unknown for values in merged),
        evidence=() if group_evidence is None else tuple(map(evidence.stated_maximum, group_evidence.per_cpu)),
    )


def _required_groups(
    recordings: Sequence[Recording], requirement: Requirement | None, probe: str | None
) -> list[RequiredGroup]:
    """Runs of one key each, with their requirement: the given one if it applies to their probe, else their own.

    All runs of one key, or of keys that may be one, are data of each requirement that one of them states.
    """
    groups: list[RequiredGroup] = []
    by_key = [(run_values(group[0]), group) for group in grouped(recordings)]
    stating = [(values, stated) for values, group in by_key if (stated := _stated_requirements(group))]
    for values, group in by_key:
        if requirement is not None and probe in (None, group[0].head.probe):
            groups.append((requirement, group))
            continue
        alike = (stated for other_values, stated in stating if may_agree(values, other_values))
        groups += [(required, group) for required in dict.fromkeys(chain.from_iterable(alike))] or [(None, group)]
    return groups


def _stated_requirements(group: Sequence[Recording]) -> list[Requirement]:
    return [recording.head.requirement for recording in group if recording.head.requirement is not None]


def measures_no_latency(recording: Recording) -> bool:
    """Whether a completed run holds throughput or explaining series only, to which a limit on latency does not apply.

    A series that is a latency of its probe, but declared as explaining or refused, is none of these: the run is judged.
    """
    if recording.outcome is not Outcome.COMPLETED or not recording.series or judged_series(recording):
        return False
    throughput_only = all(series.role is Role.THROUGHPUT for series in recording.series)
    return throughput_only or not checks.is_broken(series_as_measured(recording))


def _without_monitors(recordings: Sequence[Recording]) -> list[Recording]:
    """All recordings except those of the monitor, which explain latency but do not measure it; all if only those."""
    others = [recording for recording in recordings if not is_monitor(recording.head) or judged_series(recording)]
    return others or list(recordings)


def measured_loads(recordings: Iterable[Recording]) -> set[str | None]:
    """The loads under which a run measured a latency, or was to."""
    return {load_name(recording) for recording in recordings if not measures_no_latency(recording)}


def _missing_loads(recordings: Sequence[Recording], loads: Sequence[str] | None) -> list[str]:
    measured = measured_loads(recordings)
    return [load for load in loads or () if load not in measured]


def _uncovered(groups: Sequence[RequiredGroup], planned: Collection[str]) -> Iterator[str]:
    """The gaps of each subject whose newest setup was not measured under all its loads.

    Only runs with a requirement count: a campaign may measure other probes under other loads.  The runs of a group have
    one setup and one load.
    """
    counted = (
        [run for run in group if run.damage is None and run.series and (not planned or run.run_id in planned)]
        for required, group in groups
        if required is not None
    )
    return coverage_gaps([max(runs, key=begin_order) for runs in counted if runs], planned=bool(planned))


def _unfit(recordings: Sequence[Recording]) -> tuple[tuple[str, str], ...]:
    """(run id, reason) of the runs that were not applicable."""
    return tuple(
        (recording.run_id, "; ".join(recording.reasons) or "no reason is recorded")
        for recording in recordings
        if recording.outcome is Outcome.NOT_APPLICABLE
    )


def _speed_gap(measured: Sequence[Recording], judgeable: Sequence[Recording], required: bool) -> Iterator[str]:
    """The gap that no run holds a latency, unless all runs are of the monitor."""
    if measured and not judgeable and (required or not all(is_monitor(recording.head) for recording in measured)):
        yield "these runs contain throughput or diagnostic data only, no latency"


def _probe_gap(judgments: Sequence[Judgment], probe: str | None) -> Iterator[str]:
    """The gap that no run is of ``probe``, to which the limit applies; None: it applies to every probe."""
    if probe is not None and all(judgment.requirement is None for judgment in judgments):
        yield f"the limit applies to the probe {probe}, and no run used it"


def _near_limits(weighed: Sequence[_Weighed]) -> list[wording.NearLimit]:
    """Of each kind of runs with a requirement: values within the measurement uncertainty of the limit."""
    return [
        wording.NearLimit(group.requirement, *near_limit(group.merged, group.requirement))
        for group in weighed
        if group.requirement is not None and not any(map(is_emulated, group.recordings))
    ]


def _requirement_results(judgments: Sequence[Judgment], *, complete: bool) -> tuple[RequirementResult, ...]:
    """The verdict on each of several requirements; ``complete``: all runs that were required are there."""
    verdicts: dict[tuple[str, Requirement], list[Verdict]] = {}
    for judgment in judgments:
        if judgment.requirement is not None:
            key = judgment.probe, judgment.requirement
            verdicts.setdefault(key, [] if complete else [Verdict.INCONCLUSIVE]).append(judgment.verdict)
    if len(verdicts) < 2:
        return ()
    return tuple(
        RequirementResult(probe, requirement, _weightiest(those, Verdict.INCONCLUSIVE))
        for (probe, requirement), those in verdicts.items()
    )


def judge(
    recordings: Sequence[Recording],
    requirement: Requirement | None = None,
    *,
    probe: str | None = None,
    confidence: float = CONFIDENCE,
    loads: Sequence[str] | None = None,
    missing: Sequence[str] = (),
    planned: Collection[str] = (),
    minimum_duration_ns: int = MINIMUM_DURATION_NS,
) -> Assessment:
    """Judge recordings by their requirements; report those without a requirement.

    ``requirement`` applies to the runs of ``probe`` (None: of every probe); all others are judged by the requirement
    in their heads, if any.  ``confidence``: used if no requirement states one.  ``loads``: names of the requested
    loads; a missing one forbids a PASS, and so do each planned run in ``missing`` that was not made, and a subject
    whose newest setup was not measured under all its loads (:mod:`load_coverage`).  ``planned``: ids of the runs of one
    plan, if there is one: its loads are required, and further runs are data only.
    ``minimum_duration_ns``: measured time required for a PASS under each load.
    PASS and FAIL are valid however often growing data are judged.  Never raises for recordings.
    """
    recordings, repeated = distinct(_without_monitors(recordings))
    unfit = _unfit(recordings)
    measured = [recording for recording in recordings if recording.outcome is not Outcome.NOT_APPLICABLE]
    judgeable = [recording for recording in measured if not measures_no_latency(recording)]
    groups = _required_groups(judgeable, requirement, probe)
    highest = max((required.confidence for required, _ in groups if required is not None), default=confidence)
    weighed = [_weigh(group, minimum_duration_ns, highest if group[0] else confidence) for group in groups]
    weighed = _with_failing(weighed, highest)
    judgments = tuple(map(_judge_group, weighed))
    required = requirement is not None or any(recording.head.requirement for recording in recordings)
    uncovered = list(_uncovered(groups, planned))
    gaps = [
        *wording.gaps(recordings, dict(unfit), _missing_loads(recordings, loads), missing),
        *uncovered,
        *_speed_gap(measured, judgeable, required),
        *_probe_gap(judgments, probe if requirement and judgeable else None),
    ]
    verdicts = [judgment.verdict for judgment in judgments] + [Verdict.INCONCLUSIVE] * bool(gaps and required)
    speed_only = bool(measured) and not judgeable and not required
    verdict = _weightiest(verdicts, Verdict.NO_LIMIT if speed_only else Verdict.INCONCLUSIVE)
    emulated = any(is_emulated(recording) for recording in measured)
    return Assessment(
        verdict=verdict,
        headline=wording.headline(
            verdict, judgments, measured, list(_failures(weighed)), emulated=emulated, complete=not gaps
        ),
        reasons=wording.reasons(judgments, verdict) + tuple(gaps),
        next_steps=wording.next_steps(judgments, verdict) + wording.next_steps_of_gaps(gaps, uncovered, missing),
        cautions=(
            *wording.cautions(measured, verdict),
            *wording.declared(judgments, verdict),
            *wording.longer_disturbances(judgments, verdict),
            *wording.uncertain(_near_limits(weighed), verdict),
            *phase_lock_cautions(measured),
            *identity_cautions(measured),
            *repetition_cautions(repeated),
        ),
        judgments=judgments,
        supported=overall_supported(judgments),
        not_applicable=unfit,
        all_not_applicable=bool(recordings) and not measured and not missing,
        emulated=emulated,
        requirement_results=_requirement_results(judgments, complete=not gaps),
    )
