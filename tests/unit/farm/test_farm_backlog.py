# SPDX-License-Identifier: GPL-2.0-or-later
"""What a farm has still to judge and to read: nothing is forgotten while a plan is in progress or was interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastenough.farm.config import read_farm
from fastenough.farm.history_update import HistoryOrder, update_history
from fastenough.farm.processes import ActResult
from fastenough.farm.run import FarmRun
from fastenough.farm.state_machine import BoardAct, BoardPhase, Start
from fastenough.history import OWNER, History, board_status
from fastenough.history.boards import boards_with_new_runs
from fastenough.history.ingest import ingest_run
from fastenough.store import Store
from tests.support.fleet_stores import add_run

pytestmark = pytest.mark.check


class Processes:
    """Answers each act at once, and records the orders of updates."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = answer
        self.orders: list[HistoryOrder] = []

    async def act(self, name: str, _work: object, order: Any, _limit_s: float) -> ActResult:
        if name == "take":
            self.orders.append(order)
            return ActResult({"damaged": [], "newest_run": 7, "entered": ["b", "of another farm"]})
        return ActResult(self.answer)


@pytest.fixture
def run(tmp_path: Path) -> FarmRun:
    (tmp_path / "plan.toml").write_text('name = "short"\n[[run]]\nprobe = "timer"\nduration = "1s"\n')
    (tmp_path / "farm.toml").write_text(
        '[[board]]\nname = "b"\nlink = "local"\nlimit = "1ms"\n[[board.plan]]\nfile = "plan.toml"\n'
    )
    made = FarmRun(read_farm(tmp_path / "farm.toml"), print)
    made.states["b"] = replace(made.states["b"], phase=BoardPhase.READY)
    return made


def updated(run: FarmRun, processes: Processes, *, whole: bool = False) -> HistoryOrder:
    run._updating = processes  # type: ignore[assignment]
    asyncio.run(run._update(whole))
    return processes.orders[-1]


def test_a_board_is_judged_once_its_plan_has_ended(run: FarmRun) -> None:
    processes = Processes({})
    idle = run.states["b"]
    run.states["b"] = replace(idle, busy=frozenset({BoardAct.MEASURE}))
    assert updated(run, processes, whole=True)["judge"] == {}
    run.states["b"] = idle
    assert list(updated(run, processes)["judge"]) == ["b"]


def test_boards_with_new_runs_are_judged(run: FarmRun) -> None:
    """As those of uploads: no act of the farm announces them."""
    processes = Processes({})
    assert (updated(run, processes)["judge"], processes.orders[-1]["newest_run"]) == ({}, None)
    assert (list(updated(run, processes)["judge"]), processes.orders[-1]["newest_run"]) == (["b"], 7)
    assert list(run._backlog.judge) == ["b"]


def test_boards_are_judged_in_the_order_of_their_runs(run: FarmRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while boards with earlier names get more runs than one update judges."""
    monkeypatch.setattr("fastenough.farm.run._JUDGED", 2)
    for name in "acdz":
        run._boards[name], run.states[name] = replace(run._boards["b"], name=name), run.states["b"]
    processes = Processes({})
    for name in ("z", "c", "a"):
        run._backlog.add(run._boards[name], BoardAct.PULL, {"stored": [name]})
    assert set(updated(run, processes)["judge"]) == {"z", "c"}
    run._backlog.add(run._boards["d"], BoardAct.PULL, {"stored": ["d"]})
    assert list(run._backlog.judge) == ["a", "b", "d"]
    run.states["a"] = replace(run.states["a"], busy=frozenset({BoardAct.MEASURE}))
    assert set(updated(run, processes)["judge"]) == {"b", "d"}
    assert list(run._backlog.judge) == ["a", "b"]


@pytest.mark.parametrize(("answer", "interrupted"), [({"fault": "killed"}, ["b"]), ({"stored": ["r"]}, [])])
def test_the_runs_of_an_interrupted_plan_are_read(
    run: FarmRun, tmp_path: Path, answer: dict[str, Any], interrupted: list[str]
) -> None:
    run._acts = Processes(answer)  # type: ignore[assignment]
    asyncio.run(run._do("b", Start(BoardAct.MEASURE, tmp_path / "plan.toml")))
    order = updated(run, Processes({}))
    assert (order["interrupted"], list(order["judge"])) == (interrupted, ["b"])
    assert updated(run, Processes({}))["interrupted"] == []


def test_an_update_enters_the_finished_runs_of_boards_with_an_interrupted_plan(run: FarmRun) -> None:
    processes = Processes({})
    order = updated(run, processes, whole=True)
    update_history(order)
    with closing(Store(run.farm.store)) as store:
        add_run(store, "b", None, seed=1, intervals=1)
    with closing(History.at(run.farm.database)) as history:
        update_history({**order, "all": False})
        assert board_status(history, OWNER, "b", 0).max_ever_ns is None
        newest = update_history({**order, "all": False, "interrupted": ["b"], "newest_run": 0})["newest_run"]
        assert board_status(history, OWNER, "b", 0).max_ever_ns is not None
        assert boards_with_new_runs(history, newest - 1) == (newest, {"b"})
        assert boards_with_new_runs(history, None) == boards_with_new_runs(history, newest) == (newest, set())


def test_only_boards_with_unannounced_runs_are_judged_again(run: FarmRun) -> None:
    order: HistoryOrder = {**updated(run, Processes({}), whole=True), "all": False}
    with closing(Store(run.farm.store)) as store:
        runs = {name: add_run(store, name, None, seed=1, intervals=1) for name in ("b", "c")}
        known = update_history({**order, "judge": {}})["newest_run"]
        stored: HistoryOrder = {**order, "stored": list(runs.values()), "newest_run": known}
        assert update_history({**stored, "judge": {}}) == {"damaged": [], "newest_run": known + 2, "entered": []}
        with closing(History.at(run.farm.database)) as history:
            uploaded = add_run(store, "b", None, seed=2, intervals=1)
            ingest_run(history, store, uploaded)
        order["newest_run"] = known + 2
        assert update_history({**order, "judge": {}})["entered"] == ["b"]
        assert update_history(order)["entered"] == []
