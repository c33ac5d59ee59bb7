# SPDX-License-Identifier: GPL-2.0-or-later
"""Advice: select the relevant runs, rate each approach and walk the flowchart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fastenough import report, words
from fastenough.analysis import judge
from fastenough.analysis.advice import Advice, advise, approach_of
from fastenough.analysis.approach_rating import (
    MARGINAL_TIMES,
    ApproachRating,
    Grade,
    PublishedFigure,
    best,
    kernel_of,
    rate,
    rate_published,
    setups,
)
from fastenough.analysis.assessment import Assessment
from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.machine import identity_cautions
from fastenough.analysis.merged import load_name
from fastenough.jobs.assess import Question, judge_asked
from fastenough.model import BadInput, Outcome, Requirement
from fastenough.recording import Recording
from fastenough.recording.wakeups import MONITOR
from fastenough.reference import Reference
from fastenough.store import RunSummary, Store


@dataclass(frozen=True)
class AdviceRequest:
    """A request for advice.  ``board``: None if there is only one; ``times``: largest factor counted as marginal;
    ``selection``: how the runs were selected."""

    requirement: Requirement
    probe: str
    board: str | None = None
    times: float = MARGINAL_TIMES
    selection: Selection = Selection.CAMPAIGN


def current_runs(store: Store) -> list[RunSummary]:
    """All runs, except those repeated by ``--resume`` and those of the monitor."""
    runs = [run for run in store.runs(brief=True) if run.probe != MONITOR]
    newest = {(run.campaign, run.position): run.id for run in runs}
    return [run for run in runs if run.campaign is None or newest[run.campaign, run.position] == run.id]


def probe_of(probes: Sequence[str], named: str | None) -> str:
    """The probe of the advice; raises BadInput if it is ambiguous."""
    if named is not None or len(probes) == 1:
        return named or probes[0]
    raise BadInput(
        "no runs to base advice on; measure first"
        if not probes
        else f"advice requires one probe, but the runs are of {', '.join(probes)}; add --probe {probes[0]}"
    )


def advise_by_runs(recordings: Sequence[Recording], request: AdviceRequest, store: Store) -> Advice:
    """Walk the flowchart with measurements; raises BadInput if they are of several boards and none was named.

    The setups share the error that the confidence allows, so that the confidence applies to the advice as a whole.
    """
    mine, cautions = _of_one_board(recordings, request)
    boxes: dict[str, list[Recording]] = {}
    for recording in mine:
        boxes.setdefault(approach_of(recording.head.implementation, kernel_of(recording.head)), []).append(recording)
    unfit = {name: _unfit(runs) for name, runs in boxes.items()}
    candidates = {name: setups(_by_instrument(runs)) for name, runs in boxes.items()}
    loads = sorted({load for recording in mine if (load := load_name(recording)) not in (None, "none")})
    shared_requirement = _share_confidence(request.requirement, sum(map(len, candidates.values())))
    ratings = {
        name: _box(some, shared_requirement, loads, request, store) if some else unfit[name]
        for name, some in candidates.items()
    }
    return advise(
        ratings,
        request.requirement,
        probe=request.probe,
        times=request.times,
        cautions=cautions,
        basis=f"your measurements: {words.counted(len(mine), 'run')} of {request.probe} on "
        f"{mine[0].head.board or 'a board without a name' if mine else 'no board'}",
    )


def _of_one_board(recordings: Sequence[Recording], request: AdviceRequest) -> tuple[list[Recording], list[str]]:
    damaged = [recording.run_id for recording in recordings if recording.damage is not None]
    mine = [recording for recording in recordings if recording.damage is None and recording.head.probe == request.probe]
    boards = list(dict.fromkeys(recording.head.board or "" for recording in mine))
    if request.board is None and len(boards) > 1:
        raise BadInput(
            "; ".join(
                (
                    "advice requires one board, but the runs are of several; add --board with one of "
                    f"{', '.join(boards)}",
                    *identity_cautions(mine),
                )
            )
        )
    mine = [recording for recording in mine if request.board in (None, recording.head.board)]
    if not mine:
        what = f" on board {request.board}" if request.board else ""
        raise BadInput(f"no run of {request.probe}{what}; measure some, or choose another")
    excluded = [f"Damaged runs excluded: {', '.join(damaged)}"] if damaged else []
    return mine, [*excluded, *identity_cautions(mine)]


def _by_instrument(runs: Sequence[Recording]) -> list[Recording]:
    """The runs to judge: those of an instrument, if there are any."""
    fit = [recording for recording in runs if recording.outcome is not Outcome.NOT_APPLICABLE]
    outside = [recording for recording in fit if recording.head.instrument]
    return outside or fit


def _unfit(runs: Sequence[Recording]) -> ApproachRating:
    """Rating of an approach whose runs were not applicable."""
    reasons = dict.fromkeys(reason for recording in runs for reason in recording.reasons)
    return ApproachRating(Grade.NO_DATA, tuple(f"not applicable here: {reason}" for reason in reasons))


def _box(
    candidates: Sequence[list[Recording]],
    requirement: Requirement,
    loads: Sequence[str],
    request: AdviceRequest,
    store: Store,
) -> ApproachRating:
    """Rate one approach by all runs of the store that answer the question."""

    def judged(recordings: list[Recording], required: Requirement) -> Assessment:
        question = Question(required, required.confidence, tuple(loads), selection=request.selection)
        return judge_asked(recordings, question, store)

    return best(rate(some, partial(judged, some), requirement, request.times) for some in candidates)


def _share_confidence(requirement: Requirement, candidates: int) -> Requirement:
    """The requirement at the confidence of one of several candidates (Bonferroni); rounded to the safe side."""
    confidence = 1.0 - (1.0 - requirement.confidence) / max(1, candidates)
    rounded = math.ceil(confidence * 1e4 - 1e-6) / 1e4
    return replace(requirement, confidence=rounded if rounded < 1.0 else confidence)


def report_advice(advice: Advice, recordings: Sequence[Recording], request: AdviceRequest, out: Path) -> None:
    """Report on the runs used by the advice, with the path through the flowchart first; no further verdict."""
    mine, _ = _of_one_board(recordings, request)
    report.write_report(mine, judge(mine), out, advice=advice)


def advise_by_reference(reference: Reference, request: AdviceRequest) -> Advice:
    """Walk the flowchart with published figures, taken as exact: a demonstration, not evidence about any machine."""
    figures = reference.of(request.probe)
    boards = list(dict.fromkeys(figure.board for figure in figures))
    if request.board is None and len(boards) > 1:
        raise BadInput(f"{reference.name} has figures of several boards; add --board with one of {', '.join(boards)}")
    figures = tuple(figure for figure in figures if request.board in (None, figure.board))
    if not figures:
        raise BadInput(
            f"{reference.name} has no figures of {request.probe} on {request.board or 'any board'}; it has "
            f"{', '.join(reference.probes)}{' on ' + ', '.join(boards) if boards else ''}"
        )
    boxes: dict[str, dict[tuple[str, str], list[PublishedFigure]]] = {}
    for figure in figures:
        name = " ".join(filter(None, (figure.configuration, figure.implementation, figure.variant, figure.load)))
        of_box = boxes.setdefault(approach_of(figure.implementation, figure.kernel), {})
        of_box.setdefault((figure.configuration, figure.variant), []).append(
            PublishedFigure(name, figure.p95_ns, figure.maximum_ns, figure.exceeds_range)
        )
    ratings = {
        name: best(rate_published(some, request.requirement, request.times) for some in of_box.values())
        for name, of_box in boxes.items()
    }
    return advise(
        ratings,
        request.requirement,
        probe=request.probe,
        times=request.times,
        basis=f"published figures of {reference.name}, taken as exact: neither your measurements nor bounds",
        cautions=(f"No evidence about your machine: {reference.source}",),
    )
