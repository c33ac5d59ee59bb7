# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs with the key of the judged runs that were excluded from the judgment.

Selecting runs can select the best ones.  Runs of the same key (board, configuration, load, probe, parameters, settings,
everything that merging requires) are one body of evidence: a PASS without some of them is refused unless the headline
states the selection.  Where a value of the key is unknown, the runs may be of the same key and count as such: they are
not merged, but a PASS of one does not ignore the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fastenough import words
from fastenough.analysis.assessment import Assessment, Judgment, RequirementResult, requirement_name
from fastenough.analysis.clusters import holm
from fastenough.analysis.cpu_evidence import CpuEvidence, evidence_per_cpu
from fastenough.analysis.differences import Values, may_agree, run_values
from fastenough.analysis.evidence import merged_per_cpu
from fastenough.analysis.merged import MixedRuns
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording

_MOST_NAMED = 5


class Selection(StrEnum):
    """How the judged runs were selected."""

    CAMPAIGN = "all runs of one campaign, or of the store"
    CHOSEN = "named one by one"
    ONLY_THESE = "only these, as stated"

    @classmethod
    def of(cls, *, chosen: bool, only_these: bool) -> Selection:
        """That of runs which were ``chosen`` one by one, or stated to be ``only_these``."""
        return cls.ONLY_THESE if only_these else cls.CHOSEN if chosen else cls.CAMPAIGN


@dataclass(frozen=True)
class ExcludedRuns:
    """A run of the same key that is not judged: its n, exceedances and maximum.

    ``exceeded``: None if only the summary of the run is known, because it was deleted or its recording is damaged.
    ``exceeds``: more of its activations are above the limit than the requirement allows, or only its summary is known
    and the maximum in it is above the limit.
    ``maximum_is_least``: an imported source left out values that may be greater.
    """

    run_id: str
    n: int
    exceeded: int | None
    maximum_ns: float
    exceeds: bool
    limit_ns: int
    maximum_is_least: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether the recording was deleted or is damaged."""
        return self.exceeded is None

    @property
    def text(self) -> str:
        n, limit = words.counted(self.n, "activation"), words.exact_time(self.limit_ns)
        above = words.number(self.exceeded) if self.exceeded else "none"
        result = f"deleted or damaged; limit {limit}; {n}" if self.is_lost else f"{above} of {n} above {limit}"
        maximum = words.latency_or_least(self.maximum_ns, self.maximum_ns if self.maximum_is_least else None)
        return f"run {self.run_id} ({result}, maximum {maximum})"


@dataclass(frozen=True)
class Exclusion:
    """Runs excluded from a judgment, and the verdicts on the judged runs that are those of all runs together.

    ``all_runs_agree``: whether the judged runs and these, combined, show the same verdict as the judged runs.
    ``agreed_results``: each PASS that these runs do not contradict, and each FAIL that all runs combined show, of
    several requirements.
    """

    runs: tuple[ExcludedRuns, ...] = ()
    all_runs_agree: bool = True
    agreed_results: tuple[RequirementResult, ...] = ()


ProbeRequirement = tuple[str, Requirement]


@dataclass(frozen=True)
class RequiredOfRun:
    """What is required of the runs with the key of ``run``.

    ``series``: name of the series that it applies to, all CPUs together; None: each CPU of every judged series.
    """

    run: Recording
    required: Requirement
    series: str | None = None


def requirements_of_runs(judged: Sequence[Recording], assessment: Assessment) -> list[RequiredOfRun]:
    """What an assessment required of each run that has a requirement; a run may have several."""
    return [
        RequiredOfRun(recording, judgment.requirement)
        for recording in judged
        for judgment in assessment.judgments
        if judgment.requirement is not None and recording.run_id in judgment.run_ids
    ]


def find_excluded(required_of_runs: Sequence[RequiredOfRun], others: Iterable[Recording]) -> list[ExcludedRuns]:
    """Those of ``others`` that may have the key of a run that something is asked of, the greatest maximum first.

    Each is held against the first requirement that it exceeds, else against the first that applies to it.
    """
    keys = [run_values(required.run) for required in required_of_runs]
    ids = {required.run.run_id for required in required_of_runs}
    excluded = []
    for other in others:
        if other.run_id in ids or other.damage is not None:
            continue
        values = run_values(other)
        results_or_none = [
            excluded_run(other, required)
            for required, key in zip(required_of_runs, keys, strict=True)
            if may_agree(key, values)
        ]
        results = [result for result in results_or_none if result is not None]
        if results:
            excluded.append(next((result for result in results if result.exceeds), results[0]))
    return sorted(excluded, key=lambda run: run.maximum_ns, reverse=True)


def excluded_run(recording: Recording, required_of_run: RequiredOfRun) -> ExcludedRuns | None:
    """A run that is not judged, against what is asked; None where it holds no latency."""
    try:
        per_cpu = [values for values in merged_per_cpu([recording]) if required_of_run.series in (None, values.name)]
    except MixedRuns:
        return None
    merged = [values for values in per_cpu if values.judged]
    if not merged:
        return None
    required = required_of_run.required
    judged = [values.judged for values in merged]
    exceeded = [values.exceeded(required.limit_ns)[1] for values in merged]
    pairs = (
        list(zip(judged, exceeded, strict=True)) if required_of_run.series is None else [(sum(judged), sum(exceeded))]
    )
    return ExcludedRuns(
        recording.run_id,
        sum(judged),
        sum(exceeded),
        max(values.maximum_ns or 0.0 for values in merged),
        any(above > required.miss_rate * n for n, above in pairs),
        required.limit_ns,
        not all(values.known.maximum for values in per_cpu),
    )


def unmet_together(
    judged: Sequence[Recording], others: Sequence[Recording], assessment: Assessment
) -> set[ProbeRequirement]:
    """Requirements that allow misses, met by the runs of a judgment, and not by these and ``others`` of their kind.

    All of them are the data of the question, which only grow: so their evidence is valid however often somebody
    measures anew until the newest runs pass by themselves.  Where no miss is allowed `forbids_pass` covers that.
    """
    passed = [judgment for judgment in assessment.judgments if judgment.verdict is Verdict.PASS]
    together = _evidence_together(judged, others, passed, _confidence(assessment))
    return {required for required, evidence in together if not evidence.within}


def failed_together(
    judged: Sequence[Recording], others: Sequence[Recording], assessment: Assessment
) -> set[ProbeRequirement]:
    """Requirements shown not to be met by the judged runs and ``others`` of their kind as well.

    Where no miss is allowed one value shows that, whatever other runs hold.
    """
    never = {
        (judgment.probe, judgment.requirement)
        for judgment in assessment.judgments
        if judgment.verdict is Verdict.FAIL and judgment.requirement is not None and not judgment.requirement.miss_rate
    }
    confidence = _confidence(assessment)
    together = list(_evidence_together(judged, others, assessment.judgments, confidence))
    rejected = holm([evidence.p_value for _, evidence in together], 1.0 - confidence)
    return never | {required for (required, _), is_rejected in zip(together, rejected, strict=True) if is_rejected}


def _confidence(assessment: Assessment) -> float:
    return max(required.confidence for required in assessment.requirements)


def _evidence_together(
    judged: Sequence[Recording], others: Sequence[Recording], judgments: Iterable[Judgment], confidence: float
) -> Iterator[tuple[ProbeRequirement, CpuEvidence]]:
    """Evidence about the requirements that allow misses, of all runs of each kind, per CPU."""
    for judgment in judgments:
        required = judgment.requirement
        if required is None or not required.miss_rate:
            continue
        group = [recording for recording in judged if recording.run_id in judgment.run_ids]
        values = run_values(group[0])
        alike = [other for other in others if may_agree(values, run_values(other))]
        for of_kind in _by_kind(alike) or [[]]:
            for merged in merged_per_cpu([*group, *of_kind], unknown_agrees=True):
                for evidence in evidence_per_cpu(merged, required, confidence):
                    yield (judgment.probe, required), evidence


def _by_kind(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Sets of runs of which any two may be of one key: several if the judged runs do not state how these differ."""
    kinds: list[list[tuple[Values, Recording]]] = []
    for recording in recordings:
        values = run_values(recording)
        fitting = (kind for kind in kinds if all(may_agree(other, values) for other, _ in kind))
        kind = next(fitting, None)
        if kind is None:
            kinds.append(kind := [])
        kind.append((values, recording))
    return [[recording for _, recording in kind] for kind in kinds]


def forbids_pass(others: Sequence[ExcludedRuns], selection: Selection, *, all_runs_agree: bool = True) -> bool:
    """Whether a PASS without these runs is refused.

    It is where runs were chosen one by one, where an excluded run exceeds the allowed rate, or where all runs combined
    do not meet the requirement (not ``all_runs_agree``), unless ``selection`` is ONLY_THESE, which the headline then
    states.
    """
    if selection is Selection.ONLY_THESE or not others:
        return False
    return selection is Selection.CHOSEN or not all_runs_agree or any(run.exceeds for run in others)


def exclusion_text(others: Sequence[ExcludedRuns]) -> str:
    """The excluded runs with their results, the first few by name."""
    runs = "; ".join(run.text for run in others[:_MOST_NAMED])
    more = f"; and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return (
        f"{words.counted(len(others), 'run')} of the same kind in the store {'was' if len(others) == 1 else 'were'} "
        f"excluded: {runs}{more}"
    )


def selection_note(others: Sequence[ExcludedRuns]) -> str:
    """The note of a headline that states the selection."""
    worse = sum(run.exceeds for run in others)
    exceed = f", {worse:,} of them above the allowed rate" if worse else ""
    return f"only these runs: {words.counted(len(others), 'other run')} of the same kind excluded{exceed}"


def judged_without(assessment: Assessment, exclusion: Exclusion, selection: Selection) -> Assessment:
    """The assessment, with the excluded runs named.

    A PASS is refused as `forbids_pass` states, and a FAIL where all runs do not show it; of several requirements, each
    by itself.
    """
    others, all_runs_agree = exclusion.runs, exclusion.all_runs_agree
    if not others:
        return assessment
    text = exclusion_text(others)
    if selection is Selection.ONLY_THESE:
        return replace(
            assessment,
            cautions=(*assessment.cautions, text),
            headline=f"{assessment.headline} ({selection_note(others)})",
        )
    assessment = _with_agreed_results(assessment, exclusion)
    if assessment.verdict is Verdict.PASS and forbids_pass(others, selection, all_runs_agree=all_runs_agree):
        return _undecided(assessment, others, _against_pass(others, all_runs_agree))
    if assessment.verdict is Verdict.FAIL and not all_runs_agree:
        return _undecided(assessment, others, "and all runs together do not show that the allowed rate is exceeded")
    return replace(assessment, cautions=(*assessment.cautions, text))


def _with_agreed_results(assessment: Assessment, exclusion: Exclusion) -> Assessment:
    """The assessment without each PASS and FAIL on a single requirement that all runs together do not support."""
    results = tuple(
        replace(result, verdict=Verdict.INCONCLUSIVE)
        if result.verdict in (Verdict.PASS, Verdict.FAIL) and result not in exclusion.agreed_results
        else result
        for result in assessment.requirement_results
    )
    withdrawn = [
        f"probe {before.probe}, {requirement_name(before.requirement)}: {before.verdict} withdrawn because of excluded "
        "runs of the same kind"
        for before, now in zip(assessment.requirement_results, results, strict=True)
        if before != now
    ]
    if not withdrawn:
        return assessment
    return replace(
        assessment,
        requirement_results=results,
        reasons=(*assessment.reasons, *withdrawn),
        next_steps=(*assessment.next_steps, _how_to_include(exclusion.runs)),
    )


def _against_pass(others: Sequence[ExcludedRuns], all_runs_agree: bool) -> str:
    if not all_runs_agree:
        return "and all runs together do not meet the requirement"
    return f"{sum(run.exceeds for run in others):,} of them above the allowed rate"


def _undecided(assessment: Assessment, others: Sequence[ExcludedRuns], why: str) -> Assessment:
    return replace(
        assessment,
        verdict=Verdict.INCONCLUSIVE,
        headline=f"Not enough evidence: {words.counted(len(others), 'run')} of the same kind excluded, {why}",
        reasons=(exclusion_text(others), *assessment.reasons),
        next_steps=tuple(dict.fromkeys((_how_to_include(others), *assessment.next_steps))),
    )


def _how_to_include(others: Sequence[ExcludedRuns]) -> str:
    """The next step after a verdict was refused because of these runs."""
    state = "--only-these, which the headline then states"
    if any(run.is_lost for run in others):
        return f"restore the deleted or damaged runs from a backup and judge all runs together, or pass {state}"
    ids = " ".join(run.run_id for run in others)
    return f"judge all runs together (fastenough report with these runs and {ids}), or pass {state}"
