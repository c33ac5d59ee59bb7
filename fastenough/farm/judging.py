# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on a board: on all recordings of the evaluation window, and on its newest cycle.

A cycle is the runs of a plan, or one recording of the board's ring.  The verdict on the board covers every recording
within the window that was made in the configuration of the newest cycle.  Requirements of a plan take precedence over
those of the farm file.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastenough import words
from fastenough.analysis import judge
from fastenough.analysis.approach_rating import same_configuration
from fastenough.analysis.assessment import Assessment
from fastenough.analysis.merged import judged_series, load_name
from fastenough.history import WINDOW_S, BoardColumns, History, requirement_text, runs_of_board
from fastenough.history.intervals import is_ahead
from fastenough.model import FastenoughError, Identifiers, Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.wakeups import MONITOR
from fastenough.store import RunSummary, Store
from fastenough.store.campaign import StoredCampaign, stored_campaign

_MOST_CHARS = 1000
"""Maximum length of a reason."""
_MOST_RUNS = 4000
"""Maximum number of runs of a board that are read: one each ten minutes for 30 days."""


def verdicts_on(
    store: Store,
    board: str,
    required: Mapping[str, Any] | None,
    now_s: float | None = None,
    former_names: Sequence[str] = (),
    *,
    history: History | None = None,
) -> BoardColumns:
    """The verdicts on a board, as columns of the history.

    ``verdict`` and ``verdict_reason`` cover the evaluation window, from ``judged_from_s`` on; ``cycle_verdict`` and
    ``cycle_reason`` the newest cycle that has ended.  All are empty where nothing was measured or nothing is required.
    ``judged_by``: the requirement of both; ``plan_limit_ns``: its limit if the runs of that cycle state it.
    ``former_names``: names under which the board recorded before.  ``history``: assigns runs to boards; another board
    may have one of these names.
    """
    now_s = time.time() if now_s is None else now_s
    names = (*former_names, board)
    owner = _Owner(store, board, names, history)
    candidates = [run for name in names for run in store.own_runs(board=name, last=_MOST_RUNS)]
    own_ids = owner.own_ids(candidates)
    runs = [run for run in candidates if run.id in own_ids and _counts(run, now_s)]
    runs.sort(key=lambda run: (run.begin_wall_ns or 0, run.id))
    cycle = _cycle_of(owner, runs)
    of_farm = Requirement(**required) if required else None
    try:
        newest = [store.load(run) for run in cycle.runs] if cycle else []
    except FastenoughError as error:
        broken = Verdict.BROKEN, str(error)
        return _verdict_columns(broken, broken, None) | _requirement_columns(of_farm)
    of_plan = _common_requirement(recording.head.requirement for recording in newest)
    if cycle is None or not (of_plan or of_farm):
        return _verdict_columns(("", ""), ("", ""), None) | _requirement_columns(None)
    requirement = None if of_plan else of_farm
    judged_by = _requirement_columns(of_farm, of_plan)
    assessment = judge(newest, requirement, missing=cycle.missing, planned=cycle.runs)
    of_cycle = assessment.verdict, _reason(assessment)
    if any(recording.damage is not None for recording in newest):
        return _verdict_columns(of_cycle, of_cycle, None) | judged_by
    window = _window(store, runs, cycle, newest)
    if window.earlier or window.left_out:
        runs_of_window = [*window.earlier, *newest]
        assessment = judge(runs_of_window, requirement, missing=cycle.missing, planned=cycle.runs)
    of_window = _guard_verdict(assessment, window, of_plan or of_farm)
    return _verdict_columns(of_window, of_cycle, window.from_s) | judged_by


def _common_requirement(stated: Iterable[Requirement | None]) -> Requirement | None:
    """The requirement that some runs state, None if they state none; of several, one that follows from each of them."""
    several = {requirement for requirement in stated if requirement is not None}
    if len(several) < 2:
        return next(iter(several), None)
    return Requirement(
        max(requirement.limit_ns for requirement in several),
        max(requirement.miss_rate for requirement in several),
        min(requirement.confidence for requirement in several),
        return_time_ns=min(requirement.return_time_ns for requirement in several),
    )


def _requirement_columns(of_farm: Requirement | None, of_plan: Requirement | None = None) -> BoardColumns:
    return {
        "judged_by": requirement_text(of_plan or of_farm),
        "plan_limit_ns": None if of_plan is None else of_plan.limit_ns,
    }


@dataclass(frozen=True)
class _Owner:
    """A board of which runs are judged, with its present and former names; ``history`` None: names identify it."""

    store: Store
    board: str
    names: Sequence[str]
    history: History | None

    def own_ids(self, runs: Sequence[RunSummary]) -> set[str]:
        """Return the ids of those of some runs that belong to the board."""
        named = {run.id: run.board or "" for run in runs if run.board in self.names}
        return set(named) if self.history is None else runs_of_board(self.history, self.board, named, self._machine_of)

    def _machine_of(self, run: str) -> Identifiers:
        try:
            return self.store.load(run).head.machine
        except FastenoughError:
            return frozenset()


@dataclass(frozen=True)
class _Window:
    """Earlier recordings of the same configuration.

    ``left_out``: interrupted, failed or damaged recordings, which cannot be judged.
    """

    earlier: list[Recording]
    left_out: list[Recording]
    from_s: int


def _window(store: Store, runs: Sequence[RunSummary], cycle: StoredCampaign, newest: Sequence[Recording]) -> _Window:
    """Other recordings within the window in the configuration of the newest cycle."""
    last_s = max(recording.stopped.wall_ns for recording in newest) // 10**9
    begin_s = min(recording.head.begin.wall_ns for recording in newest) // 10**9
    earlier: list[Recording] = []
    left_out: list[Recording] = []
    for run in reversed(runs):
        if run.id in cycle.runs or (run.begin_wall_ns or 0) // 10**9 < last_s - WINDOW_S:
            continue
        recording = store.load(run.id)
        if recording.damage is not None:
            left_out.append(recording)
        elif run.outcome != "not-applicable" and same_configuration(recording.head, newest[0].head):
            required = _required_now(recording, newest)
            (earlier if run.outcome == "completed" else left_out).append(required)
            begin_s = min(begin_s, recording.head.begin.wall_ns // 10**9)
    return _Window(earlier[::-1], left_out, begin_s)


def _required_now(recording: Recording, newest: Sequence[Recording]) -> Recording:
    """An earlier recording with the requirement that its plan states now, if the newest runs of its probe and load show
    it.

    A plan may have been edited: the verdict is on one requirement.
    """
    stated = {
        run.head.requirement
        for run in newest
        if (run.head.probe, load_name(run)) == (recording.head.probe, load_name(recording))
    }
    if recording.head.requirement is None or len(stated) != 1:
        return recording
    return replace(recording, head=replace(recording.head, requirement=stated.pop()))


def _guard_verdict(of_window: Assessment, window: _Window, requirement: Requirement | None) -> tuple[Verdict, str]:
    """The verdict on the window; no PASS beside a value above the limit in a recording that cannot be judged."""
    verdict, reasons = of_window.verdict, [_reason(of_window)]
    worst = max(window.left_out, key=_maximum_ns, default=None)
    if worst is not None:
        reasons.append(f"{words.counted(len(window.left_out), 'recording')} excluded (incomplete, failed or damaged)")
    if (
        verdict is Verdict.PASS
        and worst is not None
        and requirement is not None
        and _maximum_ns(worst) > requirement.limit_ns
    ):
        verdict = Verdict.INCONCLUSIVE
        reasons.insert(
            0,
            f"Not enough evidence: the incomplete run {worst.run_id} contains "
            f"{words.latency(_maximum_ns(worst))}, above the limit of {words.exact_time(requirement.limit_ns)}",
        )
    return verdict, "; ".join(reasons)


def _maximum_ns(recording: Recording) -> float:
    """The greatest value of the series that a limit applies to."""
    return max(
        (
            max(abs(total.minimum or 0), abs(total.maximum or 0)) * series.unit_ns
            for series in judged_series(recording)
            if (total := recording.totals[series.id]).total
        ),
        default=0.0,
    )


def _reason(assessment: Assessment) -> str:
    return "; ".join((assessment.headline, *assessment.reasons))


def _verdict_columns(of_window: tuple[str, str], of_cycle: tuple[str, str], from_s: int | None) -> BoardColumns:
    """``of_window``, ``of_cycle``: verdict and reason."""
    return {
        "verdict": str(of_window[0]),
        "verdict_reason": of_window[1][:_MOST_CHARS],
        "cycle_verdict": str(of_cycle[0]),
        "cycle_reason": of_cycle[1][:_MOST_CHARS],
        "judged_from_s": from_s,
    }


def _cycle_of(owner: _Owner, runs: Sequence[RunSummary]) -> StoredCampaign | None:
    """The newest cycle; of a campaign on several boards, the runs of this one."""
    if not runs:
        return None
    campaign = runs[-1].campaign
    if not campaign:
        return StoredCampaign("", (runs[-1].id,), ())
    named = [run for run in owner.store.runs(campaign=campaign, brief=True) if run.board is not None]
    other_ids = {run.id for run in named} - owner.own_ids(named)
    return stored_campaign(owner.store, campaign, other_ids)


def _counts(run: RunSummary, now_s: float) -> bool:
    return run.state != "running" and run.probe != MONITOR and not is_ahead(run.begin_wall_ns or 0, now_s)
