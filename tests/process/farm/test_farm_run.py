# SPDX-License-Identifier: GPL-2.0-or-later
"""A farm at work on a small rack: real labgrid, real recordings, boards that fall ill, a person who reserves one.

One rack for all tests, each of which also passes alone; ``make bench`` has twenty boards (bench_farm.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fastenough.farm.lab import SimulatedTimes
from fastenough.history import PUBLIC, History, board_statuses, changes, runs
from fastenough.link.guard import descendants
from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.farm_lab import Field
from tests.support.presence import present
from tests.support.processes import ended, eventually, with_words
from tests.unit.history.test_history_tail import cycles, give_cycles

pytestmark = pytest.mark.machines

WELL = ("one", "two")
ALL = (*WELL, "dark", "stuck", "reserved")
PLANNED = """
[[board]]
name = "planned"
link = "local"
public = true
[[board.plan]]
file = "plan.toml"
"""
PLAN = """name = "short"
[[run]]
probe = "timer"
duration = "1s"
parameters = {interval = "10ms", policy = "other", allow-difference = true, affinity = 0}
"""
TIMES = {"pull": "3s", "boot": "8s", "patience": "8s", "retry": "3s"}


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("farm")
    (folder / "plan.toml").write_text(PLAN)
    made = Field(folder, ALL, SimulatedTimes(report_s=0.5, cycle_s=12.0, boot_s=0.5), TIMES, PLANNED)
    try:
        made.client("somebody", "-p", "reserved", "acquire")
        made.ail("dark", "dead")
        made.ail("stuck", "switch")
        made.start()
        made.become("measuring", *WELL)
        for name in WELL:
            assert eventually(partial(_is_growing, made, name), 240), name
        yield made
    finally:
        made.end()


def _is_growing(field: Field, name: str) -> bool:
    """Whether the history has a recording of the board that has not come into the store yet."""
    with closing(History.at(f"sqlite:///{field.folder}/store/history.sqlite")) as history:
        recorded = set(runs(history, PUBLIC, name, 0, 2**40))
    return bool(recorded - {run.id for run in Store(field.folder / "store").runs(board=name)})


def _heal(field: Field) -> None:
    """Repair the boards that are ill, and release the one that a person has."""
    field.ail("dark", "none")
    field.ail("stuck", "none")
    if "/somebody" in field.holders()["reserved"]:
        field.client("somebody", "-p", "reserved", "release")


def test_boards_measure_beside_a_dead_one_a_switch_that_hangs_and_one_that_is_reserved(field: Field) -> None:
    field.become("measuring", *WELL)
    reserved = field.become("reserved", "reserved")["reserved"]
    states = field.become("dead", "dark", "stuck")
    assert states["dark"].reason.startswith("the board did not boot within 8 s")
    assert "no console output" in states["dark"].reason
    assert states["stuck"].reason == "no answer within 26 s; the process was killed"
    assert "/somebody" in reserved.reason
    said = command_line("farm", "status", str(field.file))
    assert said.returncode == 0 and "/somebody" in said.stdout and "the farm is running" in said.stdout


def test_what_they_record_is_in_the_history_while_it_grows(field: Field) -> None:
    with closing(History.at(f"sqlite:///{field.folder}/store/history.sqlite")) as history:
        statuses = {status.board.name: status for status in board_statuses(history, PUBLIC, 2**40)}
    assert set(statuses) == {*ALL, "planned"}
    assert all(eventually(partial(_is_growing, field, name), 240) for name in WELL)
    assert all(present(statuses[name].max_ever_ns, name) > 0 for name in WELL)


def test_a_plan_is_made_once_when_it_is_due_under_the_name_of_the_board(field: Field) -> None:
    state = field.become("ready", "planned")["planned"]
    assert (state.reason, state.made_s) == ("", state.begun_s) and state.made_s > 0
    made = Store(field.folder / "store").runs(board="planned")
    assert [(run.outcome, run.position) for run in made] == [("completed", 0)]


@pytest.mark.slow
def test_a_board_that_comes_to_life_is_booted_and_one_given_back_too(field: Field) -> None:
    assert field.switched("reserved") == 0
    _heal(field)
    field.become("measuring", "dark", "stuck", "reserved")


def test_a_coordinator_that_was_killed_is_told_again_what_is_held_and_nothing_is_switched(field: Field) -> None:
    field.become("measuring", *WELL)
    before = [field.switched(name) for name in WELL]
    field.restart_coordinator()
    assert eventually(lambda: all("fastenough-farm" in field.holders()[name] for name in WELL), 120)
    assert [field.switched(name) for name in WELL] == before


@pytest.mark.slow
def test_a_farm_killed_in_mid_boot_leaves_nothing_and_goes_on_where_it_was(field: Field) -> None:
    assert field.farm is not None
    field.become("measuring", *WELL)
    before = [field.switched(name) for name in WELL]
    field.ail("dark", "hang")
    field.become("booting", "dark")
    tree = descendants(field.farm.pid)
    field.kill()
    assert eventually(lambda: all(map(ended, tree)), 60)
    _heal(field)
    with closing(History.at(f"sqlite:///{field.folder}/store/history.sqlite")) as history:
        give_cycles(history, "one", cycles(np.random.default_rng(1), 40))
        field.start()
        field.become("measuring", *ALL)
        assert [field.switched(name) for name in WELL] == before
        assert eventually(lambda: "tail" in {one.kind for one in changes(history, PUBLIC, "one", 0, 2**40)}, 60), (
            "no farm alert is at work: the farm looks for itself"
        )


def test_it_ends_in_order_lets_go_of_all_places_and_nothing_was_lost(field: Field) -> None:
    for name in WELL:
        field.require_stored(name)
    assert field.stop() == 0
    assert not any("fastenough-farm" in holder for holder in field.holders().values())
    assert not with_words("fastenough.farm", str(field.folder), "run")
    said = command_line("farm", "rebuild", str(field.file))
    assert said.returncode == 0 and re.match(r"[1-9]\d* intervals? of", said.stdout)


@pytest.mark.slow
def test_a_place_that_a_person_had_when_the_coordinator_was_started_again_is_not_switched(tmp_path: Path) -> None:
    """It is the only one of the farm, so that no other board shows that the coordinator has forgotten."""
    field = Field(tmp_path, ("reserved",), SimulatedTimes(report_s=0.5, boot_s=0.5), TIMES)
    try:
        field.client("somebody", "-p", "reserved", "acquire")
        field.start()
        field.become("reserved", "reserved")
        field.restart_coordinator()
        assert eventually(lambda: "when the coordinator restarted" in field.states()["reserved"].reason, 60), (
            field.states()
        )
        assert field.switched("reserved") == 0
        field.client("somebody", "-p", "reserved", "acquire")
        assert eventually(lambda: "/somebody" in field.states()["reserved"].reason, 60), field.states()
        field.client("somebody", "-p", "reserved", "release")
        field.become("measuring", "reserved")
    finally:
        field.end()


@pytest.mark.slow
def test_a_file_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "farm.toml").write_text('[[board]]\nname = "; rm"\nplace = "p"\n')
    said = command_line("farm", "run", str(tmp_path / "farm.toml"))
    assert said.returncode == 2 and said.stderr.count("\n") == 1 and "farm.toml:2" in said.stderr
