# SPDX-License-Identifier: GPL-2.0-or-later
"""A farm whose network is cut, whose clock is set, or that is killed: nothing is lost, double or switched without need.

``make bench`` has all of it for longer, with a database and a disk that fail (bench_farm_faults.py).
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fastenough.farm.lab import SimulatedTimes
from fastenough.history import History, catch_up
from fastenough.history.schema import INTERVAL
from fastenough.store import Store
from tests.bench.farm_kills import killed
from tests.support.farm_lab import Field
from tests.support.history_rows import all_rows
from tests.support.namespaces import network
from tests.support.processes import eventually
from tests.support.set_clock import SetClock
from tests.support.ssh_boards import ssh_server

pytestmark = pytest.mark.machines

PACE = SimulatedTimes(report_s=0.25, cycle_s=2.0, boot_s=0.5)
TIMES = {"pull": "2s", "boot": "20s", "patience": "600s", "retry": "3s"}


def same_anew(field: Field) -> None:
    """The history that the farm has kept is the one made of its store anew, but for what boards still record."""
    told: list[list[tuple[Any, ...]]] = []
    place = next(at for at, column in enumerate(INTERVAL.columns) if column.name == "run")
    with closing(Store(field.folder / "store")) as store:
        runs = {run.id for run in store.runs()}
        for name in ("store/history.sqlite", "anew.sqlite"):
            with closing(History.at(f"sqlite:///{field.folder}/{name}")) as history:
                assert not catch_up(history, store).faults
                told.append([row for row in all_rows(history)["interval"] if row[place] in runs])
    assert told[0] == told[1] != []


@pytest.mark.slow
def test_a_network_that_is_cut_costs_no_interval_and_no_other_board(tmp_path: Path) -> None:
    with network(78) as net, ssh_server(address=net.address, prefix=net.prefix) as server:
        field = Field(tmp_path, ("near", "far"), PACE, TIMES)
        try:
            field.reach("far", "ssh://board")
            field.start(**{key: value for key, value in server.environment().items() if key.startswith("FASTENOUGH")})
            field.become("measuring", "near", "far")
            before = [field.switched(name) for name in field.names]
            net.cut()
            assert eventually(lambda: field.states()["far"].reason != "", 60), field.states()
            field.require_stored("near", 30)
            net.join()
            field.require_stored("far", 60)
            assert eventually(lambda: field.states()["far"].reason == "", 30), field.states()
            assert [field.switched(name) for name in field.names] == before
        finally:
            field.end()


@pytest.mark.slow
def test_a_farm_whose_clock_is_set_by_an_hour_switches_nothing_and_loses_nothing(tmp_path: Path) -> None:
    """First it is an hour ahead of its boards, then an hour behind them."""
    clock = SetClock(tmp_path / "clock")
    field = Field(tmp_path, ("one", "two"), PACE, TIMES)
    try:
        field.start(**clock.environment)
        field.become("measuring", "one", "two")
        before = [field.switched(name) for name in field.names]
        for ahead_s in (3600, -3600):
            clock.put(ahead_s)
            time.sleep(3)
            for name in field.names:
                field.require_stored(name, 30)
            assert all(abs(state.pull_s - (time.time() + ahead_s)) < 60 for state in field.states().values()), "not set"
        assert [field.switched(name) for name in field.names] == before
        assert field.stop() == 0
        same_anew(field)
    finally:
        field.end()


@pytest.mark.slow
def test_a_farm_killed_at_random_moments_loses_nothing_and_leaves_a_persons_place_alone(tmp_path: Path) -> None:
    """``make bench`` kills it at 50, with each database."""
    assert len(killed(tmp_path, "", points=2, seed=int(time.time()))) == 3
