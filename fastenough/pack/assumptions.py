# SPDX-License-Identifier: GPL-2.0-or-later
"""The assumptions of a verdict, each with how it was checked and the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastenough import words
from fastenough.analysis import Assessment
from fastenough.analysis.checks import RUN_CHECKS, check_title
from fastenough.analysis.evidence import EVIDENCE_CHECKS
from fastenough.analysis.excluded_runs import exclusion_text
from fastenough.model import Requirement
from fastenough.pack.question import PackedQuestion
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor

HOLDS, CONTRADICTED, ASSUMED = "holds", "contradicted", "not checked"
_DATA_CHECK = "data check of each recording"
_NOT_CHECKED = "not checked: it is not in the recordings"
_NONE_MISSING = "No planned run is missing"


@dataclass(frozen=True)
class Assumption:
    """An assumption, how it was checked, the result, and the findings that contradict it."""

    assumption: str
    check: str
    result: str
    findings: tuple[str, ...] = ()


def assumptions_of(
    recordings: Sequence[Recording], question: PackedQuestion, assessment: Assessment
) -> tuple[Assumption, ...]:
    """All assumptions of a verdict on these recordings."""
    judged = [recording for recording in recordings if not is_monitor(recording.head)] or list(recordings)
    return (
        *_of_data(judged),
        *_of_evidence(judged, assessment),
        *_of_selection(question),
        *_of_the_question(assessment),
        Assumption("The system in use has the same machine, kernel and configuration", _NOT_CHECKED, ASSUMED),
        Assumption("The loads of the runs are at least as hard as those in use", _NOT_CHECKED, ASSUMED),
        Assumption("The recordings were not changed before they were sealed in the store", _NOT_CHECKED, ASSUMED),
    )


def checked(assumption: str, check: str, findings: Sequence[str]) -> Assumption:
    """An assumption that holds unless there are findings."""
    return Assumption(assumption, check, CONTRADICTED if findings else HOLDS, tuple(findings))


def _of_data(recordings: Sequence[Recording]) -> Iterator[Assumption]:
    for check in RUN_CHECKS:
        texts = [f"run {recording.run_id}: {finding.text}" for recording in recordings for finding in check(recording)]
        yield checked(check_title(check), _DATA_CHECK, texts)


def _of_evidence(recordings: Sequence[Recording], assessment: Assessment) -> Iterator[Assumption]:
    """One assumption for each kind of runs with a requirement, from the checks of all its runs together."""
    run_texts = {finding.text for recording in recordings for check in RUN_CHECKS for finding in check(recording)}
    titles = "; ".join(map(check_title, EVIDENCE_CHECKS))
    for judgment in assessment.judgments:
        if judgment.requirement is None:
            continue
        texts = [finding.text for finding in judgment.findings]
        others = [text for text in texts if not any(text.endswith(text_of_run) for text_of_run in run_texts)]
        yield checked(
            f"The evidence of probe {judgment.probe} under load {judgment.load or 'unknown'} suffices",
            f"checks of all its runs together: {titles}",
            others,
        )


def _of_selection(question: PackedQuestion) -> Iterator[Assumption]:
    yield checked(
        "No run of the same kind was left out",
        "search of the store when the pack was made",
        [exclusion_text(question.excluded)] if question.excluded else [],
    )
    if question.missing or question.compared_with_plan:
        yield checked(_NONE_MISSING, "comparison with the plan of the campaign", question.missing)
    else:
        yield Assumption(_NONE_MISSING, "not checked: runs that are named are not compared with a plan", ASSUMED)


def _of_the_question(assessment: Assessment) -> Iterator[Assumption]:
    for required in assessment.requirements:
        yield from declared(required)


def declared(required: Requirement, result: str = ASSUMED) -> Iterator[Assumption]:
    """The assumptions that a requirement declares; ``result``: the result of those not checked."""
    limit = words.exact_time(required.limit_ns)
    if required.longest_burst is not None:
        yield Assumption(
            f"One disturbance delays at most {words.counted(required.longest_burst, 'activation')} above {limit}",
            "declared; the data can contradict it, but not confirm it",
            result,
        )
    if not required.miss_rate:
        yield Assumption(
            f"Disturbances above {limit} that come less often than once in "
            f"{words.duration(required.return_time_ns)} do not matter",
            "declared by the return time",
            result,
        )
