# SPDX-License-Identifier: GPL-2.0-or-later
"""The question of a pack, and the members that follow from it and the recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastenough.analysis import Assessment, judge
from fastenough.analysis.assessment import RequirementResult
from fastenough.analysis.excluded_runs import ExcludedRuns, Exclusion, Selection, judged_without
from fastenough.analysis.judgment import measured_loads
from fastenough.model import Requirement, require_confidence
from fastenough.recording import Recording


@dataclass(frozen=True)
class PackedQuestion:
    """The question of a pack: the requirement, the selection of runs, and data that only the store has.

    ``required`` applies to the runs of ``probe`` (None: of every probe); without it runs are judged by the requirement
    in their heads.  ``missing``: planned runs that the store did not have.  ``selection``: name of a Selection.
    ``excluded``: other runs of the store with the key of a judged run, with their results.
    ``all_runs_agree``: whether the judged runs and these, combined, show the same verdict as the judged runs.
    ``planned``: whether the judged runs are all runs of one campaign; None in packs of older versions.
    ``agreed_results``: the verdicts on several requirements with which the excluded runs agree; None in packs of older
    versions.
    """

    required: Requirement | None
    confidence: float
    probe: str | None
    loads: tuple[str, ...]
    missing: tuple[str, ...]
    selection: str
    excluded: tuple[ExcludedRuns, ...]
    all_runs_agree: bool = True
    planned: bool | None = None
    agreed_results: tuple[RequirementResult, ...] | None = None

    def __post_init__(self) -> None:
        if self.selection not in Selection.__members__:
            raise ValueError("its selection is unknown")
        require_confidence(self.confidence, "its confidence")

    @property
    def compared_with_plan(self) -> bool:
        """Whether ``missing`` has all planned runs that the store lacked; of named runs it is always empty."""
        return self.selection == Selection.CAMPAIGN.name if self.planned is None else self.planned


def judged_alone(recordings: Sequence[Recording], question: PackedQuestion) -> Assessment:
    """The verdict on these recordings, whatever else the store has.

    No latency is required of a load under which only throughput was measured.
    """
    measured = measured_loads(recordings)
    return judge(
        recordings,
        question.required,
        probe=question.probe,
        confidence=question.confidence,
        loads=[load for load in question.loads if load in measured] or None,
        missing=question.missing,
        planned={recording.run_id for recording in recordings} if question.compared_with_plan else (),
    )


def with_excluded(alone: Assessment, question: PackedQuestion) -> Assessment:
    """The verdict with the excluded runs that the question states.

    Without ``agreed_results`` the verdicts on single requirements are unknown if runs were excluded.
    """
    selection, agreed = Selection[question.selection], question.agreed_results
    if agreed is None and question.excluded and selection is not Selection.ONLY_THESE:
        alone = replace(alone, requirement_results=())
    exclusion = Exclusion(question.excluded, question.all_runs_agree, agreed or ())
    return judged_without(alone, exclusion, selection)
