# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on a requirement, with its reasons.

A verdict of PASS is what is left when no check has anything to say.  Each check is one function in the list of
:mod:`checks` or of :mod:`evidence`; each yields findings, and the weightiest finding is the verdict:

* BROKEN: the data of a run cannot be trusted (of which kind of damage, the finding says);
* FAIL: more activations are beyond the limit than allowed, at the confidence that is required;
* INCONCLUSIVE: too little is known; the finding says what would settle it.

Where nothing is required there is nothing to pass: what was seen is told (``NO_LIMIT``), unless it is broken.

Runs of one key (machine, configuration, load, …) are merged; each CPU is judged by itself, since a task runs on
one, and a good CPU must not hide a bad one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fastenough import words
from fastenough.analysis import checks, evidence, wording
from fastenough.analysis.assessment import Assessment, CheckFinding, Judgment
from fastenough.analysis.distinct import distinct, said_of
from fastenough.analysis.evidence import Evidence
from fastenough.analysis.keys import parameters_of
from fastenough.analysis.machine import identity_cautions, is_emulated
from fastenough.analysis.measures import CONFIDENCE, Bound, bound_above_maximum
from fastenough.analysis.merged import Merged, cpus_not_measured, grouped, judged_series, load_name
from fastenough.analysis.phase_lock import phase_lock_cautions
from fastenough.analysis.supported import all_supported, overall_supported
from fastenough.analysis.uncertainty import near_limit
from fastenough.model import Outcome, Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.head import Head
from fastenough.recording.wakeups import is_monitor

MINIMUM_DURATION_NS = 10 * 10**9
"""Shortest measurement a PASS can rest on: what the system does once a second has then happened ten times."""

_WEIGHT = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NO_LIMIT)
"""A failure shown by sound data stands, whatever was damaged beside it; what is judged outweighs what is only told."""

Asked = tuple[Requirement | None, list[Recording]]
"""Runs of one key, and what is required of them."""


def _weightiest(verdicts: Sequence[Verdict], otherwise: Verdict) -> Verdict:
    return next((verdict for verdict in _WEIGHT if verdict in verdicts), otherwise)


@dataclass(frozen=True)
class _Weighed:
    """Runs of one key: what each by itself says against a PASS, and what those that can be trusted show together.

    ``merged``: the judged series of all of them, per kind and CPU.
    """

    requirement: Requirement | None
    recordings: list[Recording]
    merged: list[Merged]
    confidence: float
    findings: list[CheckFinding]
    evidence: Evidence | None


def _weigh(asked: Asked, minimum_duration_ns: int, confidence: float) -> _Weighed:
    requirement, recordings = asked
    checked = [(recording, checks.findings_of(recording)) for recording in recordings]
    named = len(recordings) > 1 or recordings[0].damage is not None
    found = [
        replace(finding, text=f"run {recording.run_id}: {finding.text}") if named else finding
        for recording, of_run in checked
        for finding in of_run
    ]
    merged = evidence.merged_per_cpu(recordings)
    weighed = _Weighed(requirement, recordings, merged, confidence, found, None)
    if requirement is None or any(is_emulated(recording) for recording in recordings):
        return weighed
    sound = [
        recording
        for recording, of_run in checked
        if not checks.without_real_time(recording) and all(finding.verdict is not Verdict.BROKEN for finding in of_run)
    ]
    if not sound:
        return weighed
    trusted = merged if len(sound) == len(recordings) else evidence.merged_per_cpu(sound)
    shown = evidence.evidence_of(sound, trusted, requirement, minimum_duration_ns, confidence)
    return replace(weighed, evidence=shown)


def _with_failing(weighed: Sequence[_Weighed], confidence: float) -> list[_Weighed]:
    """Every CPU and load is one of the hypotheses that are judged together."""
    failing = iter(evidence.with_failing([one.evidence for one in weighed if one.evidence is not None], confidence))
    return [one if one.evidence is None else replace(one, evidence=next(failing)) for one in weighed]


def _failures(weighed: Sequence[_Weighed]) -> Iterator[wording.Failure]:
    """Of each kind of runs with CPUs that fail: exceedances, activations and maximum of these CPUs together."""
    for one in weighed:
        failing = () if one.evidence is None else one.evidence.failing
        if failing and one.requirement is not None:
            yield wording.Failure(
                one.recordings[0].head.probe,
                one.requirement,
                sum(each.seen.surely for each in failing),
                sum(each.seen.n for each in failing),
                max(each.values.maximum_ns or 0.0 for each in failing),
            )


def _group_verdict(findings: Sequence[CheckFinding], requirement: Requirement | None, told: bool) -> Verdict:
    """``told``: values were seen and mean something, so that they can be told where nothing is required."""
    found = [finding.verdict for finding in findings]
    if requirement is None and told and Verdict.BROKEN not in found:
        return Verdict.NO_LIMIT
    return _weightiest(found, Verdict.PASS if requirement else Verdict.INCONCLUSIVE)


def _setup(head: Head) -> tuple[str, ...]:
    return head.board or "", head.configuration.name if head.configuration else "", head.implementation


def _judge_group(weighed: _Weighed) -> Judgment:
    requirement, recordings, merged, shown, confidence = (
        weighed.requirement,
        weighed.recordings,
        weighed.merged,
        weighed.evidence,
        weighed.confidence,
    )
    findings = weighed.findings + ([] if shown is None else evidence.findings_of(shown))
    worst = max(merged, key=lambda values: values.maximum_ns or 0.0, default=None)
    weakest = min(merged, key=lambda values: values.judged, default=None)
    n = sum(values.judged for values in merged)
    told = n > 0 and not any(is_emulated(recording) for recording in recordings)
    return Judgment(
        run_ids=tuple(recording.run_id for recording in recordings),
        probe=recordings[0].head.probe,
        load=load_name(recordings[0]),
        verdict=_group_verdict(findings, requirement, told),
        findings=tuple(findings),
        maximum_ns=None if worst is None else worst.maximum_ns,
        worst_cpu=None if worst is None or not worst.cpus else worst.cpus[0],
        n=n,
        exceeded=0 if requirement is None else sum(values.exceeded(requirement.limit_ns)[0] for values in merged),
        bound=Bound(0, confidence, 1.0, None) if weakest is None else bound_above_maximum(weakest, confidence),
        supported=all_supported(merged, confidence),
        not_measured=tuple(cpus_not_measured(recordings)),
        setup=_setup(recordings[0].head),
        parameters={name: words.part(name, value) for name, value in parameters_of(recordings[0].head).items()},
        requirement=requirement,
        uncharged=sum(values.judged - values.n for values in merged),
        shown=() if shown is None else tuple(map(evidence.stated, shown.shown)),
    )


def _asked_of(recordings: Sequence[Recording], requirement: Requirement | None, probe: str | None) -> list[Asked]:
    """Runs of one key each, and their requirement: the one given where it is for their probe, else their own."""
    asked: list[Asked] = []
    for group in grouped(recordings):
        given = requirement if probe in (None, group[0].head.probe) else None
        own: dict[Requirement | None, list[Recording]] = {}
        for recording in group:
            own.setdefault(given or recording.head.requirement, []).append(recording)
        asked += own.items()
    return asked


def _measures_speed_only(recording: Recording) -> bool:
    """Whether a run that went well holds throughput and nothing else: a limit on latency says nothing about it."""
    return recording.outcome is Outcome.COMPLETED and bool(recording.series) and not judged_series(recording)


def _judged_ones(recordings: Sequence[Recording]) -> list[Recording]:
    """All but those of the monitor, which say why and never how late; unless there are no others."""
    others = [recording for recording in recordings if not is_monitor(recording.head) or judged_series(recording)]
    return others or list(recordings)


def _missing_loads(recordings: Sequence[Recording], loads: Sequence[str] | None) -> list[str]:
    present = {load_name(recording) for recording in recordings}
    return [load for load in loads or () if load not in present]


def _unfit(recordings: Sequence[Recording]) -> tuple[tuple[str, str], ...]:
    """(run, why) of those that could not be made here."""
    return tuple(
        (recording.run_id, "; ".join(recording.reasons) or "no reason is recorded")
        for recording in recordings
        if recording.outcome is Outcome.NOT_APPLICABLE
    )


def _speed_gap(measured: Sequence[Recording], judgeable: Sequence[Recording], required: bool) -> Iterator[str]:
    """The gap that no run holds a latency, except where all runs are of the monitor."""
    if measured and not judgeable and (required or not all(is_monitor(recording.head) for recording in measured)):
        yield "these runs contain throughput or diagnostic data only, no latency"


def _probe_gap(judgments: Sequence[Judgment], probe: str | None) -> Iterator[str]:
    """The gap that no run is of ``probe``, to which the limit applies; None: it applies to every probe."""
    if probe is not None and all(judgment.requirement is None for judgment in judgments):
        yield f"the limit applies to the probe {probe}, and no run used it"


def _near_limits(weighed: Sequence[_Weighed]) -> list[wording.NearLimit]:
    """Of each kind of runs with a requirement: values within the measurement uncertainty of the limit."""
    return [
        wording.NearLimit(one.requirement, *near_limit(one.merged, one.requirement))
        for one in weighed
        if one.requirement is not None and not any(map(is_emulated, one.recordings))
    ]


def judge(
    recordings: Sequence[Recording],
    requirement: Requirement | None = None,
    *,
    probe: str | None = None,
    confidence: float = CONFIDENCE,
    loads: Sequence[str] | None = None,
    missing: Sequence[str] = (),
    minimum_duration_ns: int = MINIMUM_DURATION_NS,
) -> Assessment:
    """Judge recordings by what is required of them; of those of which nothing is required, say what was seen.

    ``requirement`` is for the runs of ``probe`` (None: of every probe); all others are judged by what their own heads
    state, if anything.  ``confidence`` is used where no requirement states one.  ``loads``: names of the loads that
    were to be measured; one that is missing forbids a PASS, and so does each run in ``missing``, which were planned
    and are not among the recordings.  ``minimum_duration_ns``: measured time a PASS needs under each load.
    PASS and FAIL are valid however often growing data are judged.  Never raises for recordings.
    """
    recordings, again = distinct(_judged_ones(recordings))
    unfit = _unfit(recordings)
    measured = [recording for recording in recordings if recording.outcome is not Outcome.NOT_APPLICABLE]
    judgeable = [recording for recording in measured if not _measures_speed_only(recording)]
    asked = _asked_of(judgeable, requirement, probe)
    sure = max((required.confidence for required, _ in asked if required is not None), default=confidence)
    weighed = _with_failing([_weigh(one, minimum_duration_ns, sure if one[0] else confidence) for one in asked], sure)
    judgments = tuple(map(_judge_group, weighed))
    required = requirement is not None or any(recording.head.requirement for recording in recordings)
    gaps = [
        *wording.gaps(recordings, dict(unfit), _missing_loads(recordings, loads), missing),
        *_speed_gap(measured, judgeable, required),
        *_probe_gap(judgments, probe if requirement and judgeable else None),
    ]
    verdicts = [judgment.verdict for judgment in judgments]
    if gaps and required:
        verdicts.append(Verdict.INCONCLUSIVE)
    speed_only = bool(measured) and not judgeable and not required
    verdict = _weightiest(verdicts, Verdict.NO_LIMIT if speed_only else Verdict.INCONCLUSIVE)
    emulated = any(is_emulated(recording) for recording in measured)
    return Assessment(
        verdict=verdict,
        headline=wording.headline(
            verdict, judgments, measured, list(_failures(weighed)), emulated=emulated, complete=not gaps
        ),
        reasons=wording.reasons(judgments, verdict) + tuple(gaps),
        settle=wording.settle(judgments, verdict) + wording.settle_gaps(gaps, missing),
        cautions=(
            *wording.cautions(measured, verdict),
            *wording.declared(judgments, verdict),
            *wording.longer_ones(judgments, verdict),
            *wording.uncertain(_near_limits(weighed), verdict),
            *phase_lock_cautions(measured),
            *identity_cautions(measured),
            *said_of(again),
        ),
        judgments=judgments,
        supported=overall_supported(judgments),
        not_applicable=unfit,
        all_not_applicable=bool(recordings) and not measured and not missing,
        emulated=emulated,
    )
