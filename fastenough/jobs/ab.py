# SPDX-License-Identifier: GPL-2.0-or-later
"""A/B test of one change: pairs of runs without and with it, in random order, until an effect is shown."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastenough.analysis.instructions import MaximaComparison, PathComparison
from fastenough.analysis.paired import LEAST_ROUNDS, ROUND, Effects, Pair, judged_name, order_of_arms
from fastenough.board import Board, is_deterministic
from fastenough.campaign import Plan, Progress, run_campaign
from fastenough.campaign.expand import expand, plan_sha256, titles
from fastenough.campaign.ledger import new_campaign
from fastenough.campaign.stop import StopRequest
from fastenough.campaign.transcript import Writer
from fastenough.jobs.job_store import OneCampaign
from fastenough.model import BadInput, FastenoughError, NotApplicable, Outcome
from fastenough.recording import Recording
from fastenough.recording.head import RecordedSetting
from fastenough.settings import Settings, difference, is_in_effect
from fastenough.store import Store

_BESIDE_S = 3.5
"""Assumed overhead of a run, until one was measured."""
IDLE_LATENCY = "idle-latency"
"""The setting that disables idle states.  Probes also prevent them, unless they have the parameter latency=off."""
Opened = Callable[[str], Board]
Decided = Callable[[Sequence[Pair]], bool]


class RunFailed(FastenoughError):
    """A run of a test failed; the message names it and the reason."""


@dataclass(frozen=True)
class AbTest:
    """A requested A/B test.

    ``plan``: one run without the change.  ``change``: settings by name.  ``booted``: the configuration that replaces
    that of the plan, if that is the change.  ``again``: the test confirms an earlier one with the same arguments.
    ``rounds``: the greatest number of rounds.  ``least_of_order``: see :func:`order_of_arms`.  ``audit``: name of the
    audit that the test belongs to, empty for none; tests of different audits have no runs in common.
    """

    plan: Plan
    change: Mapping[str, str]
    rounds: int
    booted: str = ""
    again: bool = False
    least_of_order: int = 0
    audit: str = ""

    def with_change(self) -> Plan:
        """One run with the change."""
        configurations = (self.booted,) if self.booted else self.plan.configurations
        return replace(self.plan, settings={**self.plan.settings, **self.change}, configurations=configurations)

    @property
    def changed(self) -> tuple[str, ...]:
        """The differences of runs with the change, as text."""
        settings = tuple(f"{name}={value}" for name, value in self.change.items())
        return (*settings, f"booted {self.booted}") if self.booted else settings

    def measured_by(self, granted: Plan) -> AbTest:
        """The same test with the probe parameters of another plan."""
        return replace(self, plan=replace(self.plan, entries=granted.entries))

    @property
    def runs(self) -> int:
        return self.rounds * ROUND

    @property
    def name(self) -> str:
        """The change, as text."""
        return " ".join(self.changed)

    def label(self, arm: str) -> str:
        """Label of an arm."""
        return f"B: {self.name}" if arm == "B" else "A: unchanged"


@dataclass(frozen=True)
class AbRuns:
    """The finished runs in order; a resumed test may lack some before others.

    ``order``: the arm of each, see :func:`order_of_arms`; ``positions``: the place of each in the test; ``signal``:
    number of the signal that stopped the test, or 0.
    """

    campaign: str
    runs: tuple[str, ...]
    order: tuple[str, ...]
    positions: tuple[int, ...]
    signal: int = 0

    @property
    def rounds(self) -> int:
        """Number of complete rounds."""
        per_round = Counter(position // ROUND for position in self.positions)
        return sum(runs == ROUND for runs in per_round.values())

    def pairs(self, load: Callable[[str], Recording]) -> list[Pair]:
        """The recordings of complete pairs."""
        pairs, by_position = [], dict(zip(self.positions, zip(self.runs, self.order, strict=False), strict=True))
        for position in self.positions:
            if position % 2 or position + 1 not in by_position:
                continue
            (first_id, arm), (second_id, _) = by_position[position], by_position[position + 1]
            first, second, change_first = load(first_id), load(second_id), arm == "B"
            pairs.append(Pair(second, first, True) if change_first else Pair(first, second, False))
        return pairs


@dataclass(frozen=True)
class AbRounds:
    """Number of complete rounds, and of planned ones at most."""

    done: int
    planned: int


@dataclass(frozen=True)
class AbResult:
    """The result of a test, as ``fastenough ab --json`` prints it.

    ``order``: the arm of each of ``runs``.  ``effects``: None with too few valid pairs.  On a deterministic board
    ``paths`` and ``maxima`` replace them, and the runs with the change are those of ``campaign_with``.
    """

    conclusion: str
    campaign: str
    campaign_with: str | None
    change: Mapping[str, str]
    runs: Sequence[str]
    order: Sequence[str]
    rounds: AbRounds
    decided: bool
    effects: Effects | None = None
    paths: Sequence[PathComparison] = ()
    maxima: Sequence[MaximaComparison] = ()
    cautions: Sequence[str] = ()


def require_changeable(trial: AbTest, opened: Opened) -> None:
    """Apply the change once and undo it.

    Raises NotApplicable with the reason if the board refuses it, BadInput if it is already in effect.
    """
    for board in trial.plan.boards if trial.change else ():
        configuration = trial.with_change().configurations[0]
        with opened(board).boot(configuration) as booted, Settings(booted.link) as settings:
            if all(is_in_effect(booted.link, name, value) for name, value in trial.change.items()):
                raise BadInput(
                    f"{trial.name} is already in effect, so A and B would be the same; use "
                    "another value, or undo it first"
                )
            for name, value in trial.change.items():
                _require_one(settings.apply(name, value))


def is_begun(trial: AbTest, store: Store) -> bool:
    """Whether the store has runs of the same test, which it can resume."""
    return any(run.campaign for run in store.runs(plan_sha256=_AbCampaign(store, trial).sha256))


def _require_one(entries: Sequence[RecordedSetting]) -> None:
    """Raise NotApplicable if all places of a setting refused the value."""
    refused = list(filter(None, map(difference, entries)))
    if refused and len(refused) == len(entries):
        raise NotApplicable(f"this setting could not be changed: {refused[0]}")


@dataclass
class _AbCampaign(OneCampaign):
    """The runs of one test, in an order drawn from the campaign id; complete earlier pairs count."""

    trial: AbTest

    def __post_init__(self) -> None:
        specs = expand(self.trial.plan)
        self._title = titles(self.trial.plan, specs)[0]
        changed = (
            *sorted(self.trial.change.items()),
            *((self.trial.booted,) if self.trial.booted else ()),
            *(("again",) if self.trial.again else ()),
            *((self.trial.audit,) if self.trial.audit else ()),
        )
        orders = (self.trial.rounds, self.trial.least_of_order)
        identity = repr((plan_sha256(self.trial.plan, specs), list(changed), orders))
        self.sha256 = hashlib.sha256(identity.encode()).hexdigest()
        self.campaign = new_campaign(self.trial.audit or "ab")

    @property
    def order(self) -> tuple[str, ...]:
        """The arm of each run."""
        return order_of_arms(self.campaign, self.trial.rounds, self.trial.least_of_order)

    def resume(self) -> None:
        """Continue the latest campaign of this test; raises BadInput if there is none or another bench runs it.

        Complete pairs are used.  An interrupted pair is repeated from its first run, since drift cancels only between
        consecutive runs.
        """
        mine = self.newest(
            self.sha256, "A/B test with the same probe, load, board, duration, change and number of rounds"
        )
        sound = {
            run.position: run.id
            for run in mine
            if run.outcome == Outcome.COMPLETED.value and self.store.fault(run.id) is None
        }
        for first in range(0, self.trial.runs, 2):
            pair = (first, first + 1)
            if all(position in sound for position in pair):
                self.made |= {position: sound[position] for position in pair}

    def require_same_systems(self, opened: Opened, compared: set[str]) -> None:
        """Raise ChangedSystem unless the board is the system of the stored runs, in the configuration of each arm.

        All tests of an audit are judged together, so that the stored runs are those of the whole audit.  ``compared``:
        the configurations compared so far, which are not booted again for it; those of this test are added.
        """
        for arm, plan in (("A", self.trial.plan), ("B", self.trial.with_change()))[: 2 if self.trial.booted else 1]:
            configuration = plan.configurations[0]
            if configuration in compared:
                continue
            compared.add(configuration)
            if self.trial.audit:
                stored = self.runs(brief=True, configuration=configuration)
                run_ids = [run.id for run in stored if (run.campaign or "").startswith(self.trial.audit)]
            else:
                run_ids = [run for position, run in sorted(self.made.items()) if self.order[position] == arm]
            self.require_system_of(run_ids, opened(plan.boards[0]), configuration)

    @property
    def left(self) -> list[int]:
        """Positions of the remaining runs."""
        return [position for position in range(self.trial.runs) if position not in self.made]

    def result(self, signal: int = 0) -> AbRuns:
        positions = sorted(self.made)
        runs, order = (tuple(values[position] for position in positions) for values in (self.made, self.order))
        return AbRuns(self.campaign, runs, order, tuple(positions), signal)

    def is_decided(self, decided: Decided) -> bool:
        """Whether the runs end with a complete round and are enough."""
        rounds, begun = divmod(len(self.made), ROUND)
        if begun or rounds < LEAST_ROUNDS or max(self.made) >= len(self.made):
            return False
        return decided(self.result().pairs(self.store.load))

    def begin(self, origin: Mapping[str, Any] | None = None) -> Writer:
        planned = tuple(f"{self._title}, {self.trial.label(arm)}" for arm in self.order)
        return self.placed(self.sha256, planned)


@dataclass
class _AbProgress:
    """Progress of the whole test; ``left``: number of runs that remained when it started."""

    trial: AbTest
    campaign: str
    left: int
    tell: Callable[[Progress, str], None]
    begun_s: float = field(default_factory=time.monotonic)

    def at(self, position: int, done: int, label: str) -> Callable[[Progress], None]:
        """Progress callback of the run at a position; ``done``: number of finished runs."""
        guess_s = self.trial.plan.entries[0].duration_s + _BESIDE_S
        each_s = (time.monotonic() - self.begun_s) / done if done else guess_s
        later_s = (self.left - done - 1) * each_s

        def report(progress: Progress) -> None:
            self.tell(
                replace(
                    progress,
                    campaign=self.campaign,
                    run=position + 1,
                    runs=self.trial.runs,
                    remaining_s=progress.remaining_s + later_s,
                    later_s=progress.later_s + later_s,
                ),
                label,
            )

        return report


def require_visible(recording: Recording, change: Mapping[str, str]) -> None:
    """Raise NotApplicable if the probe itself prevents the idle states that the change would disable."""
    held_us = next(
        (setting.in_effect for setting in recording.head.settings if setting.name == "cpu_dma_latency_us"), None
    )
    if IDLE_LATENCY in change and isinstance(held_us, int) and held_us <= int(change[IDLE_LATENCY]):
        raise NotApplicable(
            f"the probe allows no idle state with an exit latency above {held_us} us, so "
            f"{IDLE_LATENCY}={change[IDLE_LATENCY]} disables none; give the probe the parameter latency=off"
        )


def require_measured(recording: Recording, change: Mapping[str, str]) -> None:
    """Raise NotApplicable, BadInput or RunFailed for a run that cannot be part of a test."""
    if recording.outcome is Outcome.NOT_APPLICABLE:
        raise NotApplicable("; ".join(recording.reasons) or "no reason recorded")
    for name in change:
        _require_one([setting for setting in recording.head.settings if setting.name.split(" ")[0] == name])
    if recording.outcome is not Outcome.COMPLETED:
        reasons = "; ".join(recording.reasons) or recording.cut_off or "no reason recorded"
        raise RunFailed(f"run {recording.run_id} failed: {reasons}; earlier runs are stored")
    judged_name(recording)


def make_ab_test(
    trial: AbTest,
    store: Store,
    on_progress: Callable[[Progress, str], None],
    *,
    opened: Opened,
    decided: Decided = lambda pairs: False,
    resume: bool = False,
    tell: Callable[[str], None] | None = None,
    compared: set[str] | None = None,
) -> AbRuns:
    """Make the runs in pairs; the change is undone after each run that has it.

    ``on_progress``: also gets the label of the arm.  ``decided``: called after each round from the third on; the test
    ends when it returns true.  ``resume``: continue the newest campaign of the same test if it is incomplete.
    ``compared``: configurations that earlier tests of the audit compared with those of the stored runs; this one's are
    added.  SIGINT and SIGTERM end the current run and the test.  Raises as ``run_campaign`` and
    :func:`require_changeable` do, ChangedSystem if the board is not the system of the stored runs of the test or its
    audit, BadInput for a deterministic board, NotApplicable if nothing can be measured here, RunFailed if a run fails.
    """
    if any(map(is_deterministic, trial.plan.boards)):
        raise BadInput("on a deterministic board each pair repeats the first and adds no evidence; use fastenough ab")
    campaign, stopping = _AbCampaign(store, trial), StopRequest()
    if resume:
        campaign.resume()
    left = [] if campaign.is_decided(decided) else campaign.left
    if left:
        campaign.require_same_systems(opened, set() if compared is None else compared)
        require_changeable(trial, opened)
    progress = _AbProgress(trial, campaign.campaign, len(left), on_progress)
    for done, position in enumerate(left):
        campaign.position, arm = position, campaign.order[position]
        has_it = arm == "B"
        arm_campaign = run_campaign(
            trial.with_change() if has_it else trial.plan,
            campaign,
            progress.at(position, done, trial.label(arm)),
            opened=opened,
            stopping=stopping,
            tell=tell,
        )
        if arm_campaign.stopped:
            campaign.made.pop(position, None)
            return campaign.result(arm_campaign.signal)
        recording = store.load(arm_campaign.runs[0])
        require_visible(recording, trial.change)
        require_measured(recording, trial.change if has_it else {})
        if campaign.is_decided(decided):
            break
    return campaign.result()
