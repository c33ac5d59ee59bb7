# SPDX-License-Identifier: GPL-2.0-or-later
"""One change on trial: runs without and with it take turns, so that what drifts meanwhile is on both sides alike."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastenough.analysis.paired import ORDER, judged_name
from fastenough.board import AS_BOOTED, Board
from fastenough.campaign import Plan, Progress, run_campaign
from fastenough.campaign.expand import expand, plan_sha256, titles
from fastenough.campaign.stopping import Stopping
from fastenough.campaign.transcript import Writer
from fastenough.model import BadInput, FastenoughError, NotApplicable, Outcome
from fastenough.recording import Recording
from fastenough.recording.head import Setting
from fastenough.settings import Settings, difference, is_in_effect
from fastenough.store import Store

_BESIDE_S = 3.5
"""What a run takes beyond its measuring, as a guess until one was seen."""
Opened = Callable[[str], Board]


@dataclass(frozen=True)
class Trial:
    """``plan``: one run without the change.  ``change``: the settings that make it, by name."""

    plan: Plan
    change: Mapping[str, str]
    rounds: int

    def with_change(self) -> Plan:
        """One run with the change."""
        return replace(self.plan, settings={**self.plan.settings, **self.change})

    def measured_by(self, granted: Plan) -> Trial:
        """The same with the probe's parameters as another plan has them."""
        return replace(self, plan=replace(self.plan, entries=granted.entries))

    @property
    def runs(self) -> int:
        return self.rounds * len(ORDER)

    def arm(self, position: int) -> str:
        return ORDER[position % len(ORDER)]

    def label(self, position: int) -> str:
        """Which side a run is on, in words."""
        changed = " ".join(f"{name}={value}" for name, value in self.change.items())
        return f"B: {changed}" if self.arm(position) == "B" else "A: as it is"


@dataclass(frozen=True)
class Made:
    """The runs there are, in order; ``signal``: the number of what stopped it, or 0."""

    campaign: str
    runs: tuple[str, ...]
    signal: int = 0

    def rounds(self, load: Callable[[str], Recording]) -> list[list[Recording]]:
        """The recordings of whole rounds."""
        whole = len(self.runs) // len(ORDER) * len(ORDER)
        return [[load(run) for run in self.runs[begin:begin + len(ORDER)]] for begin in range(0, whole, len(ORDER))]


def require_changeable(trial: Trial, opened: Opened) -> None:
    """Make the change once and put it back; raises NotApplicable with the reason where the board refuses it, BadInput
    where it is no change."""
    for board in trial.plan.boards:
        with opened(board).boot(AS_BOOTED) as booted, Settings(booted.link) as settings:
            if all(is_in_effect(booted.link, name, value) for name, value in trial.change.items()):
                raise BadInput(f"{trial.label(1)[3:]} is in effect already: A and B would be the same; name "
                               "another value, or undo it first")
            for name, value in trial.change.items():
                _require_one(settings.apply(name, value))


def _require_one(entries: Sequence[Setting]) -> None:
    """Raises NotApplicable where none of the places of a setting took its value."""
    refused = list(filter(None, map(difference, entries)))
    if refused and len(refused) == len(entries):
        raise NotApplicable(f"this cannot be changed here: {refused[0]}")


@dataclass
class _Turns:
    """The store, as the runs of one trial need it: all of them are one campaign, each at its position."""

    store: Store
    trial: Trial
    campaign: str
    position: int = 0
    begun: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        specs = expand(self.trial.plan)
        title = titles(self.trial.plan, specs)[0]
        self._planned = tuple(f"{title}, {self.trial.label(position)}" for position in range(self.trial.runs))
        said = repr((plan_sha256(self.trial.plan, specs), sorted(self.trial.change.items()), self.trial.rounds))
        self._sha256 = hashlib.sha256(said.encode()).hexdigest()

    def begin(self, origin: Mapping[str, Any] | None = None) -> Writer:
        writer = self.store.begin({"campaign": self.campaign, "plan_sha256": self._sha256, "position": self.position,
                                   "positions": len(self._planned), "planned": self._planned})
        self.begun.append(writer.id)
        return writer

    def runs(self, **equal: Any) -> list[Any]:
        return self.store.runs(**equal)

    def load(self, run: str) -> Recording:
        return self.store.load(run)

    def settle(self) -> None:
        self.store.settle()

    def fault(self, run_id: str) -> str | None:
        return self.store.fault(run_id)


@dataclass
class _Standing:
    """Where the whole trial stands, told with each run's own progress."""

    trial: Trial
    campaign: str
    duration_s: float
    tell: Callable[[Progress], None]
    begun_s: float = field(default_factory=time.monotonic)

    def at(self, position: int) -> Callable[[Progress], None]:
        each_s = ((time.monotonic() - self.begun_s) / position if position else self.duration_s + _BESIDE_S)
        later_s = (self.trial.runs - position - 1) * each_s

        def told(progress: Progress) -> None:
            self.tell(replace(progress, campaign=self.campaign, run=position + 1, runs=self.trial.runs,
                              remaining_s=progress.remaining_s + later_s, later_s=progress.later_s + later_s))

        return told


def _require_measured(recording: Recording, change: Mapping[str, str]) -> None:
    """Raises NotApplicable, BadInput or FastenoughError for a run that can be no part of a trial."""
    if recording.outcome is Outcome.NOT_APPLICABLE:
        raise NotApplicable("; ".join(recording.reasons) or "no reason is recorded")
    for name in change:
        _require_one([setting for setting in recording.head.settings if setting.name.split(" ")[0] == name])
    if recording.outcome is not Outcome.COMPLETED:
        reasons = "; ".join(recording.reasons) or recording.cut_off or "no reason is recorded"
        raise FastenoughError(f"run {recording.run_id} failed: {reasons}; what was measured before is kept")
    judged_name(recording)


def make_trial(trial: Trial, store: Store, on_progress: Callable[[Progress], None], *, opened: Opened,
               tell: Callable[[str], None] | None = None) -> Made:
    """Make the runs in turns; the change is put back after each run that has it.

    SIGINT and SIGTERM end the run under way in good order and the trial with it.  Raises as ``run_campaign`` and
    :func:`require_changeable` do, NotApplicable where nothing can be measured here, FastenoughError where a run fails.
    """
    require_changeable(trial, opened)
    campaign = f"ab-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
    keeper, stopping = _Turns(store, trial, campaign), Stopping()
    standing = _Standing(trial, campaign, trial.plan.entries[0].duration_s, on_progress)
    for position in range(trial.runs):
        keeper.position = position
        has_it = trial.arm(position) == "B"
        done = run_campaign(trial.with_change() if has_it else trial.plan, keeper, standing.at(position),
                            opened=opened, stopping=stopping, tell=tell)
        if done.stopped:
            return Made(campaign, tuple(keeper.begun[:position]), done.signal)
        _require_measured(store.load(done.runs[0]), trial.change if has_it else {})
    return Made(campaign, tuple(keeper.begun))

