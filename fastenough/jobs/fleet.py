# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence about a type of board, from all boards of the type in a store (docs/fleet.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fastenough.analysis import fleet
from fastenough.analysis.board_types import RunKind, boards_of, loads_of, type_text
from fastenough.analysis.distinct import distinct
from fastenough.analysis.excluded_runs import ExcludedRuns, RequiredOfRun, excluded_run
from fastenough.analysis.fleet import SHARE, FleetEvidence, fleet_evidence
from fastenough.analysis.merged import load_name
from fastenough.jobs.assess import OnStep, excluded_by_summary, no_progress, read_runs
from fastenough.jobs.fleet_conditions import conditions_of
from fastenough.model import BadInput, Outcome, Requirement, Verdict
from fastenough.pack.assumptions import Assumption
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor
from fastenough.store import RunSummary, Store


@dataclass(frozen=True)
class FleetQuestion:
    """Do at least ``share`` of all boards of a type keep what is ``required``?

    ``only_these``: the named runs are the only data, and not examples of the runs that are.
    """

    required: Requirement
    share: float = SHARE
    only_these: bool = False


@dataclass(frozen=True)
class UnpooledBoard:
    """A board of the type whose runs answer another question, and the first difference."""

    board: str
    runs: tuple[str, ...]
    difference: str


@dataclass
class FleetRuns:
    """Runs of a store, sorted by what they say about a type of board.

    ``pooled``: its data.  ``unpooled``: boards of the type with runs of another kind only.  ``excluded``: runs that
    answer the question and are no data of it, the deleted and damaged ones included.  ``other_loads``: loads that were
    not asked for, under which the boards were measured, too.  ``damaged``: ids of runs that cannot be read.
    """

    pooled: list[Recording] = field(default_factory=list)
    unpooled: list[UnpooledBoard] = field(default_factory=list)
    excluded: list[ExcludedRuns] = field(default_factory=list)
    excluded_boards: list[str] = field(default_factory=list)
    other_loads: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FleetResult:
    """The verdict about a type of board, with all that it rests on."""

    verdict: Verdict
    headline: str
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...]
    cautions: tuple[str, ...]
    type: str
    loads: tuple[str, ...]
    evidence: FleetEvidence
    conditions: tuple[Assumption, ...]
    unpooled: tuple[UnpooledBoard, ...]
    excluded: tuple[ExcludedRuns, ...]
    excluded_boards: tuple[str, ...]
    damaged: tuple[str, ...]


def judge_fleet(
    store: Store, examples: Sequence[Recording], question: FleetQuestion, on_step: OnStep = no_progress
) -> FleetResult:
    """Judge the type of board of which these runs are examples.

    Raises BadInput for examples of several kinds, or of a kind that is not known completely.
    """
    kinds = _kinds(examples)
    runs = _runs_of_kind(store, examples, kinds, question, on_step)
    checked, _ = distinct(runs.pooled)
    boards = boards_of(checked)
    on_step("judging", lambda: 0.0)
    evidence = fleet_evidence(boards, question.required, question.share)
    complete = question.only_these or not (runs.excluded or runs.excluded_boards)
    verdict = evidence.verdict(complete=complete)
    loads = tuple(str(load) for load in loads_of(boards))
    return FleetResult(
        verdict,
        fleet.headline(evidence, verdict, type_text(examples[0]), loads, _selection(runs, question)),
        tuple(fleet.reasons(evidence, runs.excluded, complete=complete)),
        tuple(fleet.next_steps(evidence, verdict)),
        tuple(fleet.cautions(evidence, [run.board for run in runs.unpooled], runs.other_loads, runs.damaged)),
        type_text(examples[0]),
        loads,
        evidence,
        tuple(
            conditions_of(
                boards,
                evidence,
                [f"board {run.board}: {run.difference}" for run in runs.unpooled],
                [*(run.text for run in runs.excluded), *(f"board {name}" for name in runs.excluded_boards)],
            )
        ),
        tuple(runs.unpooled),
        tuple(runs.excluded),
        tuple(runs.excluded_boards),
        tuple(runs.damaged),
    )


def _selection(runs: FleetRuns, question: FleetQuestion) -> str:
    """The note of a headline that states what was left out; empty where nothing was."""
    if not question.only_these:
        return ""
    return fleet.selection_note(runs.excluded, runs.excluded_boards)


def _kinds(examples: Sequence[Recording]) -> list[RunKind]:
    kinds = [RunKind.of(recording) for recording in examples]
    for recording, kind in zip(examples, kinds, strict=True):
        if kind.unknown is not None:
            raise BadInput(f"run {recording.run_id} cannot be pooled with other boards: {kind.unknown}")
        difference = kinds[0].difference(kind)
        if difference is not None:
            raise BadInput(
                f"runs {examples[0].run_id} and {recording.run_id} cannot be pooled: {difference}; "
                "name runs that differ in board and load only"
            )
    return kinds


def _runs_of_kind(
    store: Store, examples: Sequence[Recording], kinds: Sequence[RunKind], question: FleetQuestion, on_step: OnStep
) -> FleetRuns:
    """All runs of the store that answer the question, of any board."""
    head, runs = examples[0].head, FleetRuns()
    summaries = [
        run
        for run in store.runs(brief=True, probe=head.probe, implementation=head.implementation)
        if run.state != "running" and run.outcome != Outcome.NOT_APPLICABLE
    ]
    ids = [run.id for run in summaries]
    recordings = [recording for recording in read_runs(store, ids, on_step) if not is_monitor(recording.head)]
    runs.damaged = [recording.run_id for recording in recordings if recording.damage is not None]
    sound = [(recording, RunKind.of(recording)) for recording in recordings if recording.damage is None]
    of_kind = [(recording, kind) for recording, kind in sound if kinds[0].difference(kind) is None]
    runs.pooled = [recording for recording, kind in of_kind if any(kind.has_load_of(example) for example in kinds)]
    others = [recording for recording, kind in of_kind if not any(kind.has_load_of(example) for example in kinds)]
    runs.other_loads = sorted({load for load in map(load_name, others) if load is not None})
    runs.unpooled = list(_unpooled_boards(runs.pooled, sound, kinds[0]))
    other_types = {str(recording.head.board) for recording, kind in sound if not kinds[0].is_same_type(kind)}
    lost = [*store.removed(), *(run for run in summaries if run.id in runs.damaged)]
    runs.excluded = _lost_runs(lost, examples, other_types - _names(runs.pooled), question.required)
    if question.only_these:
        _take_only(runs, {recording.run_id for recording in examples}, question.required)
    return runs


def _names(recordings: Iterable[Recording]) -> set[str]:
    return {str(recording.head.board) for recording in recordings}


def _unpooled_boards(
    pooled: Sequence[Recording], sound: Sequence[tuple[Recording, RunKind]], kind: RunKind
) -> Iterator[UnpooledBoard]:
    """Boards of the type without a run of the kind."""
    names = _names(pooled)
    others = [
        recording
        for recording, other_kind in sound
        if kind.is_same_type(other_kind) and kind.difference(other_kind) and recording.head.board not in names
    ]
    for board in boards_of(others):
        difference = kind.difference(RunKind.of(board.recordings[-1]))
        yield UnpooledBoard(board.name, board.run_ids, difference or "")


def _lost_runs(
    lost: Sequence[RunSummary], examples: Sequence[Recording], other_types: set[str], required: Requirement
) -> list[ExcludedRuns]:
    """Deleted and damaged runs that may have answered the question, of any board, with a maximum above the limit."""
    answers = {_question_key(example) for example in examples}
    return [
        excluded
        for gone in lost
        if (gone.configuration, gone.probe, gone.implementation, gone.load) in answers
        and gone.board not in other_types
        and (excluded := excluded_by_summary(gone, required.limit_ns)) is not None
    ]


def _question_key(recording: Recording) -> tuple[str | None, ...]:
    head = recording.head
    configuration = head.configuration.name if head.configuration else None
    return configuration, head.probe, head.implementation, load_name(recording)


def _take_only(runs: FleetRuns, ids: set[str], required: Requirement) -> None:
    """Leave out all runs but these, and note what was left out: whole boards by name, other runs with their results."""
    named = [run for run in runs.pooled if run.run_id in ids]
    others = [run for run in runs.pooled if run.run_id not in ids]
    runs.excluded_boards = [board.name for board in boards_of(runs.pooled) if not ids & set(board.run_ids)]
    results = (excluded_run(run, RequiredOfRun(run, required)) for run in others)
    runs.excluded += [run for run in results if run is not None]
    runs.pooled = named
