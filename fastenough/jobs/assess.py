# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure, judge and report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fastenough import report
from fastenough.analysis import Assessment, judge
from fastenough.analysis.assessment import RequirementResult
from fastenough.analysis.checks import findings_of, is_broken
from fastenough.analysis.excluded_runs import (
    ExcludedRuns,
    Exclusion,
    ProbeRequirement,
    RequiredOfRun,
    Selection,
    failed_together,
    find_excluded,
    forbids_pass,
    judged_without,
    requirements_of_runs,
    unmet_together,
)
from fastenough.analysis.merged import load_name
from fastenough.analysis.task_set import TaskAnswer, TaskSet, answer_of, judged_with
from fastenough.board import Board, open_board
from fastenough.campaign import Entry, Plan, Progress, run_campaign
from fastenough.jobs.job_store import store_conclusion, stored_conclusions
from fastenough.jobs.longer_runs import longer_runs
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor
from fastenough.reference import Reference
from fastenough.report.conclusions import tasks_section
from fastenough.report.context import Note
from fastenough.report.document import Section
from fastenough.store import RunSummary, Store

OnStep = Callable[[str, Callable[[], float]], None]
"""Progress callback: the step that begins, and a function that returns its completed share, 0 to 1."""

SHORTEST_RUN_NS = 10**9
ASSESSED = "timer"
"""The probe of an assessment, to which its limit applies."""


def no_progress(what: str, share: Callable[[], float]) -> None:
    """Progress callback that does nothing."""


@dataclass(frozen=True)
class Question:
    """The question to answer; without ``required`` there is no verdict.

    ``probe``: the probe that the requirement applies to; None: all probes.
    """

    required: Requirement | None
    confidence: float
    loads: tuple[str, ...] = ()
    probe: str | None = None
    missing: tuple[str, ...] = ()
    """Missing runs of a campaign, as text."""
    beside: tuple[Reference, ...] = ()
    """Published systems that the report compares with."""
    note: Note | None = None
    """Note of the plan, if the runs are of one campaign."""
    tasks: TaskSet | None = None
    """Task set whose deadlines are required, if any."""
    selection: Selection = Selection.CAMPAIGN
    """How the judged runs were selected."""
    planned: bool = False
    """Whether they are all runs of one campaign, whose plan states the loads of each entry."""


@dataclass(frozen=True)
class AssessmentResult:
    """The verdict with its reasons, and the files of the report.

    ``signal``: number of the signal that stopped the runs, or 0.  ``tasks``: result for a task set, if requested.
    """

    assessment: Assessment
    documents: tuple[Path, ...]
    signal: int = 0
    tasks: TaskAnswer | None = None


def assessment_plan(
    board: str,
    loads: Sequence[str],
    duration_ns: int,
    interval: str,
    priority: int,
    *,
    requirement: Requirement | None = None,
    monitor: bool = False,
) -> Plan:
    """A timer under each of the loads, which share the duration; raises BadInput if it is too short."""
    each_ns = duration_ns // len(loads)
    if each_ns < SHORTEST_RUN_NS:
        raise BadInput(
            f"--duration is split among {len(loads)} loads, which leaves less than 1 s for each; "
            f"use at least {len(loads)}s"
        )
    parameters: dict[str, tuple[str | int, ...]] = {"interval": (interval,), "priority": (priority,)}
    entry = Entry(ASSESSED, tuple(loads), each_ns / 1e9, parameters, requirement=requirement)
    return Plan("assess", (entry,), boards=(board,), monitor=monitor)


def assess(
    plan: Plan,
    question: Question,
    store: Store,
    out: Path,
    on_progress: Callable[[Progress], None],
    *,
    resume: bool = False,
    opened: Callable[[str], Board] = open_board,
    tell: Callable[[str], None] | None = None,
    on_step: OnStep = no_progress,
) -> AssessmentResult | int:
    """Measure, judge and report; returns the signal number if it stopped the first run."""
    campaign = run_campaign(plan, store, on_progress, resume=resume, opened=opened, tell=tell)
    if campaign.signal and not campaign.runs:
        return campaign.signal
    return judge_and_report(
        read_runs(store, campaign.runs, on_step), question, store, out, signal=campaign.signal, on_step=on_step
    )


def read_runs(store: Store, runs: Sequence[str], on_step: OnStep = no_progress) -> list[Recording]:
    """The recordings of these runs."""
    recordings: list[Recording] = []
    on_step("reading the runs", lambda: len(recordings) / max(1, len(runs)))
    for run in runs:
        recordings.append(store.load(run))
    return recordings


def judge_asked(recordings: Sequence[Recording], question: Question, store: Store) -> Assessment:
    """Judge recordings against a requirement; all runs of the store that answer the question are its data."""
    judged = [recording for recording in recordings if not is_monitor(recording.head)]
    assessment = judge(
        recordings,
        question.required,
        probe=question.probe,
        confidence=question.confidence,
        loads=question.loads or None,
        missing=question.missing,
        planned={recording.run_id for recording in recordings} if question.planned else (),
    )
    return judged_without(assessment, excluded_by(judged, assessment, question.selection, store), question.selection)


def excluded_by(judged: Sequence[Recording], assessment: Assessment, selection: Selection, store: Store) -> Exclusion:
    """Other runs of the store that answer the question, and whether all of them together show the same verdicts.

    ``assessment``: the verdict on the judged runs alone.  Those of the question are read again for a PASS or FAIL only,
    so that not every run that was looked at stays in memory.
    """
    if not assessment.requirements:
        return Exclusion()
    questions = requirements_of_runs(judged, assessment)
    others = find_excluded(questions, runs_alike(judged, store))
    excluded = (*lost_alike(questions, store, {run.run_id for run in judged}), *others)
    verdicts = {assessment.verdict, *(result.verdict for result in assessment.requirement_results)}
    if not excluded or selection is Selection.ONLY_THESE or not verdicts & {Verdict.PASS, Verdict.FAIL}:
        return Exclusion(excluded)
    if selection is Selection.CHOSEN and assessment.verdict is Verdict.PASS and not assessment.requirement_results:
        return Exclusion(excluded)
    together = _AllRuns(judged, [store.load(run.run_id) for run in others], assessment)
    agreed = (result for result in assessment.requirement_results if together.agree_with(result, selection, store))
    return Exclusion(excluded, together.agree, tuple(agreed))


@dataclass(frozen=True)
class _AllRuns:
    """The judged runs and all ``others`` of their kind.

    A run that is BROKEN cannot support a verdict: a FAIL is shown without it, a PASS also with it.
    """

    judged: Sequence[Recording]
    others: Sequence[Recording]
    assessment: Assessment

    @cached_property
    def _sound(self) -> list[Recording]:
        return [run for run in self.others if not is_broken(findings_of(run))]

    @cached_property
    def _unmet(self) -> set[ProbeRequirement]:
        unmet = unmet_together(self.judged, self.others, self.assessment)
        if len(self._sound) < len(self.others):
            unmet |= unmet_together(self.judged, self._sound, self.assessment)
        return unmet

    @cached_property
    def _failed(self) -> set[ProbeRequirement]:
        return failed_together(self.judged, self._sound, self.assessment)

    @property
    def agree(self) -> bool:
        """Whether all runs together show the verdict on the judged ones."""
        if not self.others:
            return True
        verdict = self.assessment.verdict
        return bool(self._failed) if verdict is Verdict.FAIL else verdict is not Verdict.PASS or not self._unmet

    def agree_with(self, result: RequirementResult, selection: Selection, store: Store) -> bool:
        """Whether the runs to which one requirement applies together show its PASS or FAIL."""
        required = (result.probe, result.requirement)
        if result.verdict is not Verdict.PASS:
            return result.verdict is Verdict.FAIL and (not self.others or required in self._failed)
        questions = [
            question
            for question in requirements_of_runs(self.judged, self.assessment)
            if (question.run.head.probe, question.required) == required
        ]
        lost = lost_alike(questions, store, {run.run_id for run in self.judged})
        excluded = [*lost, *find_excluded(questions, self.others)]
        return not forbids_pass(excluded, selection, all_runs_agree=required not in self._unmet)


def lost_alike(
    questions: Sequence[RequiredOfRun],
    store: Store,
    taken: Collection[str],
    since_ns: int = -1,
    read: Callable[[str], Recording] | None = None,
) -> list[ExcludedRuns]:
    """Runs that were deleted from the store, or whose recordings are damaged, and whose maximum is above the limit of
    a question: first the deleted ones, each newest first.

    Their parameters and settings are gone with their recordings: board, configuration, probe, implementation and load
    decide which question they answered.  ``taken``: ids of the runs that the question includes.  ``since_ns``: only
    runs that began later (wall clock).  ``read``: read a run; default: the store's.
    """
    read = read or store.load
    stored = store.runs(brief=True, probe={question.run.head.probe for question in questions})
    deleted, present = (
        [
            excluded
            for run in reversed(runs)
            if run.id not in taken
            and run.state != "running"
            and (run.begin_wall_ns or 0) > since_ns
            and (excluded := _exceeds_by_summary(run, questions)) is not None
        ]
        for runs in (store.removed(), stored)
    )
    here = [run for run in present[:_MOST_ALIKE] if store.has(run.run_id)]
    return [*deleted, *(run for run in here if read(run.run_id).damage is not None)]


def _exceeds_by_summary(run: RunSummary, questions: Sequence[RequiredOfRun]) -> ExcludedRuns | None:
    """The run, if the maximum in its summary is above the least limit of its questions."""
    limit_ns = min((asked.required.limit_ns for asked in questions if _has_key_of(run, asked.run)), default=None)
    return None if limit_ns is None else excluded_by_summary(run, limit_ns)


def excluded_by_summary(run: RunSummary, limit_ns: int) -> ExcludedRuns | None:
    """A run of which only the summary is known, if the maximum in it is above the limit."""
    if run.worst_ns is None or run.worst_ns <= limit_ns:
        return None
    return ExcludedRuns(run.id, run.samples or 0, None, float(run.worst_ns), True, limit_ns)


def _has_key_of(gone: RunSummary, run: Recording) -> bool:
    head = run.head
    configuration = head.configuration.name if head.configuration else None
    key = (head.board, configuration, head.probe, head.implementation, load_name(run))
    return key == (gone.board, gone.configuration, gone.probe, gone.implementation, gone.load)


_MOST_ALIKE = 200
"""Maximum number of runs read per board, probe, implementation and load: those nearest in time."""


def runs_alike(
    judged: Sequence[Recording], store: Store, read: Callable[[str], Recording] | None = None
) -> Iterator[Recording]:
    """Other runs of the store that may answer the same question.  ``read``: read a run; default: the store's."""
    read = read or store.load
    taken = {recording.run_id for recording in judged}
    begins = {
        (
            recording.head.board,
            recording.head.probe,
            recording.head.implementation,
            load_name(recording),
        ): recording.head.begin.wall_ns
        for recording in judged
    }
    for (board, probe, implementation, load), begin_ns in begins.items():
        alike = store.runs(brief=True, board=board, probe=probe, implementation=implementation, load=load)
        apart = sorted(
            (abs((run.begin_wall_ns or 0) - begin_ns), run.id)
            for run in alike
            if run.id not in taken and run.state != "running"
        )
        for _, run_id in apart[:_MOST_ALIKE]:
            yield read(run_id)


def judge_and_report(
    recordings: Sequence[Recording],
    question: Question,
    store: Store,
    out: Path,
    *,
    signal: int = 0,
    on_step: OnStep = no_progress,
) -> AssessmentResult:
    """Judge recordings against a requirement and write a report."""
    on_step("judging", lambda: 0.0)
    assessment = judge_asked(recordings, question, store)
    tasks = None if question.tasks is None else answer_of(question.tasks, recordings, question.loads)
    if tasks is not None:
        assessment = judged_with(assessment, tasks)
    made = [0.0]
    on_step("making the report", lambda: made[-1])
    return AssessmentResult(
        assessment,
        tuple(
            report.write_report(
                recordings,
                assessment,
                out,
                made.append,
                references=question.beside,
                note=question.note,
                tasks=tasks,
                answers=_answers(recordings, tasks, store),
                longer=longer_runs(recordings, store),
            )
        ),
        signal,
        tasks,
    )


def _answers(recordings: Sequence[Recording], tasks: TaskAnswer | None, store: Store) -> tuple[Section, ...]:
    """Section of the task set, which is stored; without one, the stored sections of these runs."""
    runs = [recording.run_id for recording in recordings]
    if tasks is None:
        return stored_conclusions(store, runs)
    section = tasks_section(tasks)
    if section is None:
        return ()
    store_conclusion(store, runs, section)
    return (section,)
