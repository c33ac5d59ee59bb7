# SPDX-License-Identifier: GPL-2.0-or-later
"""From nothing to a verdict: measure, judge, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fastenough.analysis import Assessment, judge
from fastenough.board import Board, open_board
from fastenough.campaign import Entry, Plan, Progress, run_campaign
from fastenough.model import BadInput, Requirement
from fastenough.recording import Recording
from fastenough.reference import Reference
from fastenough.report import write_report
from fastenough.store import Store
from fastenough.store.looks import question_of

SHORTEST_RUN_NS = 10**9
ASSESSED = "timer"
"""The probe that an assessment is made of, and so the one its limit is for."""


@dataclass(frozen=True)
class Question:
    """What the measurement is to answer; without ``required``, only what was seen is told.

    ``probe``: whose latencies are required to be so; None: those of every probe.
    """

    required: Requirement | None
    confidence: float
    loads: tuple[str, ...] = ()
    probe: str | None = None
    missing: tuple[str, ...] = ()
    """In words, which runs of a campaign are not there."""
    beside: tuple[Reference, ...] = ()
    """Published systems that the report sets beside what was measured."""


@dataclass(frozen=True)
class Answer:
    """The verdict with its reasons, and the files of the report.  ``signal``: what stopped the measurement, or 0."""

    assessment: Assessment
    documents: tuple[Path, ...]
    signal: int = 0


def assessment_plan(board: str, loads: Sequence[str], duration_ns: int, interval: str, priority: int, *,
                    requirement: Requirement | None = None) -> Plan:
    """A timer under each of the loads, which share the duration; raises BadInput where that is too short."""
    each_ns = duration_ns // len(loads)
    if each_ns < SHORTEST_RUN_NS:
        raise BadInput(f"--duration is shared by {len(loads)} loads and leaves less than a second for each; "
                       f"give at least {len(loads)}s")
    parameters: dict[str, tuple[str | int, ...]] = {"interval": (interval,), "priority": (priority,)}
    entry = Entry(ASSESSED, tuple(loads), each_ns / 1e9, parameters, requirement=requirement)
    return Plan("assess", (entry,), boards=(board,))


def assess(plan: Plan, question: Question, store: Store, out: Path, on_progress: Callable[[Progress], None], *,
           resume: bool = False, opened: Callable[[str], Board] = open_board,
           tell: Callable[[str], None] | None = None) -> Answer | int:
    """Measure, judge, report; the number of the signal that stopped it where nothing was measured at all."""
    campaign = run_campaign(plan, store, on_progress, resume=resume, opened=opened, tell=tell)
    if campaign.signal and not campaign.runs:
        return campaign.signal
    recordings = [store.load(run) for run in campaign.runs]
    return judge_and_report(recordings, question, store, out, campaign.signal)


def _asked(recordings: Sequence[Recording], question: Question) -> str | None:
    """The question: the requirement, given or stated by all of the runs, and of what; None where there is no one."""
    heads = [recording.head for recording in recordings]
    stated = {head.requirement for head in heads}
    required = question.required or (stated.pop() if len(stated) == 1 else None)
    subjects = {(head.board, head.configuration and head.configuration.name, head.probe, head.implementation)
                for head in heads}
    return question_of(asdict(required), sorted(map(str, subjects))) if required is not None and heads else None


def judge_and_report(recordings: Sequence[Recording], question: Question, store: Store, out: Path,
                     signal: int = 0) -> Answer:
    """What recordings say about a requirement, and a report on them; the store counts how often it was asked."""
    asked, runs = _asked(recordings, question), [recording.run_id for recording in recordings]
    assessment = judge(recordings, question.required, probe=question.probe, confidence=question.confidence,
                       loads=question.loads or None, missing=question.missing,
                       look=store.looks_before(asked, runs) if asked else 0)
    if asked:
        store.note_look(asked, runs, assessment.verdict)
    return Answer(assessment, tuple(write_report(recordings, assessment, out, question.beside)), signal)
