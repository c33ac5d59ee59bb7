# SPDX-License-Identifier: GPL-2.0-or-later
"""A hunt on a deterministic board: the same trials each time, at phases that differ, and a planted trigger is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from fastenough.board import AS_BOOTED
from fastenough.board.base import Booted
from fastenough.campaign import Entry, Plan
from fastenough.campaign.expand import PHASES_WITHIN_NS
from fastenough.hunt.extent import TrialCount
from fastenough.hunt.stressors import STRESSORS
from fastenough.jobs import hunt as hunting
from fastenough.jobs.hunt import BoardCapacity, Hunt, HuntResult, make_hunt
from fastenough.jobs.job_store import OneCampaign
from fastenough.link import FakeLink
from fastenough.model import BadInput, Configuration, Outcome
from fastenough.store import Store

TRIGGER = "flock"
PLAN = Plan("hunt", (Entry("timer", ("none",), 0.5, {"interval": ("1ms",)}),), boards=("deterministic",))


@dataclass
class _Bench:
    """A deterministic board without guests: a trial lasts as long as its load and its phase make it.

    ``boots``: number of profiles read; ``trials``: load and phase of each trial.
    """

    boots: int = 0
    trials: list[tuple[str, int]] = field(default_factory=list)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    name: str = "deterministic"

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED,)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        self.boots += 1
        yield Booted(FakeLink({}), Configuration(configuration), "fastenough-probe")

    def measure(self, plan: Plan, *args: object, opened: Callable[[str], object], **more: object) -> object:
        (entry,) = plan.entries
        assert entry.phase_ns is not None
        self.trials.append((entry.loads[0], entry.phase_ns))
        self.commands += [command for load in plan.loads.values() for command in load.commands]
        opened("deterministic")
        planted = any(f"--{TRIGGER}" in command for load in plan.loads.values() for command in load.commands)
        return SimpleNamespace(stopped=False, runs=(f"{30_000 + 400_000 * planted + entry.phase_ns // 1000}",))


def _hunt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: int) -> tuple[HuntResult, _Bench]:
    bench = _Bench()
    names = ("cpu", TRIGGER, "fifo", "pipe", "switch", "fork")
    assert set(names) <= set(STRESSORS)
    monkeypatch.setattr(hunting, "run_campaign", bench.measure)
    monkeypatch.setattr(hunting, "examine_board", lambda board, only: BoardCapacity(1, names, 700 << 20))
    monkeypatch.setattr(hunting, "block_maxima", lambda recording, turns: [int(recording.run_id)] * 2)
    head = SimpleNamespace(profile={"emulator": {}})
    monkeypatch.setattr(
        OneCampaign,
        "load",
        lambda self, run: SimpleNamespace(outcome=Outcome.COMPLETED, run_id=run, reasons=(), head=head),
    )
    hunt = Hunt(PLAN, TrialCount(trials), fixed=("none", "cpu"))
    hunted = make_hunt(hunt, Store(tmp_path), lambda progress, ask: None, opened=lambda name: bench)
    return hunted, bench


def test_the_same_hunt_makes_the_same_trials_and_finds_the_trigger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, bench = _hunt(tmp_path / "once", monkeypatch, 60)
    again, other = _hunt(tmp_path / "again", monkeypatch, 60)
    assert bench.trials == other.trials and once.runs == again.runs and once.campaign != again.campaign
    assert len(bench.trials) <= 60
    assert once.search.result is not None and again.search.result == once.search.result
    assert [part.stressor for part in once.search.result.recipe] == [TRIGGER]
    looks = sorted(once.search.looks, key=lambda look: -look.excess)
    planted = [any(part.stressor == TRIGGER for part in look.recipe) for look in looks]
    assert planted == sorted(planted, reverse=True), "of one recipe each, groups are compared with each other"
    assert bench.boots == 1, "one boot for the profile serves all trials"


def test_each_trial_has_a_phase_and_a_seed_of_the_stressors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, bench = _hunt(tmp_path, monkeypatch, 60)
    phases = [phase for _, phase in bench.trials]
    assert phases == [TrialCount(60).phase_ns(position) for position in range(len(phases))] and len(set(phases)) == len(
        phases
    )
    assert all(0 <= phase < PHASES_WITHIN_NS for phase in phases)
    assert bench.commands and all(
        "--seed" in command and "turns" not in " ".join(command) for command in bench.commands
    )


def test_too_few_trials_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="at least 40 trials"):
        _hunt(tmp_path, monkeypatch, 39)
    hunted, _ = _hunt(tmp_path, monkeypatch, 40)
    assert hunted.search.result is not None
