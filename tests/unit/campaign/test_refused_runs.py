# SPDX-License-Identifier: GPL-2.0-or-later
"""A run whose option the task refuses, after runs that it did not refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, cast

import pytest

from fastenough.board import AS_BOOTED, Board, Booted
from fastenough.campaign import Campaign, read_plan, run_campaign, runner
from fastenough.campaign.expand import WHOLE, RunSpec
from fastenough.campaign.measure import BoardSetup, RunContext
from fastenough.campaign.runner import ChangedSystem
from fastenough.campaign.transcript import Transcript, no_proof
from fastenough.farm import acts
from fastenough.implementations.task import Refused
from fastenough.link import FakeLink
from fastenough.model import BadInput, Configuration, Outcome
from fastenough.recording.building import HeadAdditions
from fastenough.store import Store
from tests.support import recordings as made

PLAN = """
name = "refused"
board = "local"
duration = "1s"
[[run]]
probe = "timer"
parameters = { affinity = ["0", "1"] }
"""


class _Board:
    """A board that is measured as booted."""

    name = "local"

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED,)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        yield Booted(FakeLink({}), Configuration(AS_BOOTED), "probe")


@pytest.mark.parametrize("kind", [Refused, BadInput])
def test_a_refused_option_is_no_fault_of_a_board_of_the_farm(
    kind: type[BadInput], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other errors, such as missing privileges, are."""

    def measured(site: BoardSetup, spec: RunSpec, context: RunContext) -> Transcript:
        if spec.position:
            raise kind("there is no CPU 1")
        writer = context.begin(WHOLE)
        for line in made.write(tmp_path / "made", made.Plan([], writer.id)).read_bytes().splitlines(keepends=True):
            writer.line(line)
        writer.end()
        return Transcript(lambda: writer, HeadAdditions("local", site.booted.configuration, None), no_proof)

    def kept(*_: object, **__: object) -> Campaign:
        return campaign

    monkeypatch.setattr(runner, "measure", measured)
    monkeypatch.setattr(runner, "check_cpus", lambda plan, link: None)
    plan_file, store = tmp_path / "plan.toml", Store(tmp_path / "store")
    plan_file.write_text(PLAN)
    campaign = run_campaign(
        read_plan(plan_file), store, opened=lambda name: cast(Board, _Board()), journal=tmp_path / "journal"
    )
    assert [store.load(run).outcome for run in campaign.runs] == [Outcome.COMPLETED, Outcome.FAILED]
    assert campaign.refused == (campaign.runs[1:] if kind is Refused else ())
    monkeypatch.setattr(acts, "run_campaign", kept)
    monkeypatch.setattr(acts, "check_plan", lambda plan: None)
    for name in ("LG_COORDINATOR", "LG_USERNAME"):
        monkeypatch.setenv(name, "")
    answer = acts.measure(_order(tmp_path, plan_file))
    assert answer.get("refusal" if kind is Refused else "fault") == "there is no CPU 1"
    assert ("fault" in answer, "refusal" in answer) == (kind is not Refused, kind is Refused)
    assert answer["stored"] == list(campaign.runs)


def _order(folder: Path, plan_file: Path) -> acts.BoardOrder:
    order = {"board": "local", "stated_link": "local", "plan": str(plan_file), "store": str(folder / "store")}
    more = {"resume": False, "coordinator": "", "farm": "", "state": str(folder)}
    return cast(acts.BoardOrder, order | more)


def test_a_plan_of_a_farm_is_checked_before_its_board_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only the board can find, such as a setting that its kernel lacks, is a refusal too."""
    for name in ("LG_COORDINATOR", "LG_USERNAME"):
        monkeypatch.setenv(name, "")
    plan_file = tmp_path / "plan.toml"
    plan_file.write_text(PLAN.replace('affinity = ["0", "1"]', 'policy = ["fifo", "other"], priority = 98'))
    monkeypatch.setattr(acts, "run_campaign", _raising(Refused("used")))
    answer = acts.measure(_order(tmp_path, plan_file))
    assert answer.keys() == {"refusal"} and "priority has no effect with policy=other" in answer["refusal"]
    plan_file.write_text(PLAN.replace('affinity = ["0", "1"]', 'affinity = "0"'))
    for error in (Refused("used"), BadInput("preemption: rt is not in this kernel")):
        monkeypatch.setattr(acts, "run_campaign", _raising(error))
        assert acts.measure(_order(tmp_path, plan_file)) == {"refusal": str(error)}
    monkeypatch.setattr(acts, "run_campaign", _raising(ChangedSystem("a boot may bring back that of the kept runs")))
    with pytest.raises(ChangedSystem):
        acts.measure(_order(tmp_path, plan_file))


def _raising(error: Exception) -> Callable[..., NoReturn]:
    def run_campaign(*_: object, **__: object) -> NoReturn:
        raise error

    return run_campaign
