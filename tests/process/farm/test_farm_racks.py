# SPDX-License-Identifier: GPL-2.0-or-later
"""Two racks, each with its coordinator, its farm and its store, in one PostgreSQL: each keeps to its own boards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from fastenough.farm.lab import SimulatedTimes
from fastenough.history import PUBLIC, History, board_statuses, catch_up
from fastenough.history.schema import INTERVAL
from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.farm_lab import Field
from tests.support.history_rows import all_rows
from tests.support.postgresql import running_server
from tests.support.processes import eventually

pytestmark = pytest.mark.machines

RACKS = (("left-1", "left-2"), ("right-1", "right-2"))
TIMES = {"pull": "2s", "boot": "20s", "patience": "600s", "retry": "3s"}
_BOARD, _RUN = ([column.name for column in INTERVAL.columns].index(name) for name in ("board", "run"))


@contextmanager
def racks(folder: Path, database: str) -> Iterator[tuple[Field, Field]]:
    with ExitStack() as stack:
        made = []
        for number, names in enumerate(RACKS):
            (here := folder / str(number)).mkdir()
            made.append(
                Field(here, names, SimulatedTimes(report_s=0.5, cycle_s=5.0, boot_s=0.5), TIMES, database=database)
            )
            stack.callback(made[-1].end)
        yield made[0], made[1]


def taken(history: History, runs: set[str]) -> Counter[str]:
    return Counter(repr(row) for row in all_rows(history)["interval"] if row[_RUN] in runs)


def same_anew(history: History, left: Field, right: Field, folder: Path) -> None:
    """What both have taken is what lies in both stores, each interval once."""
    with closing(History.at(f"sqlite:///{folder}/anew.sqlite")) as anew:
        runs: set[str] = set()
        for field in (left, right):
            with closing(Store(field.folder / "store")) as store:
                assert not catch_up(history, store).faults and not catch_up(anew, store).faults
                runs |= {run.id for run in store.runs()}
        assert taken(history, runs) == taken(anew, runs) != Counter()


def rows_of(history: History, field: Field) -> Counter[str]:
    return Counter(repr(row) for row in all_rows(history)["interval"] if row[_BOARD] in field.names)


def all_shown(history: History) -> bool:
    told = board_statuses(history, PUBLIC, 2**40)
    return {one.board.name for one in told if one.max_ever_ns} == {name for names in RACKS for name in names}


def goes_on(field: Field) -> None:
    """A further recording of each board ends, and comes into the store."""
    before = {name: len(field.recorded(name)) for name in field.names}
    assert eventually(lambda: all(len(field.recorded(name)) > before[name] for name in field.names), 60)
    for name in field.names:
        field.require_stored(name)


@pytest.mark.slow
def test_two_racks_share_a_database_and_one_that_is_killed_or_made_anew_costs_the_other_nothing(tmp_path: Path) -> None:
    with (
        running_server() as server,
        racks(tmp_path, server.url) as (left, right),
        closing(History.at(server.url)) as history,
    ):
        for field in (left, right):
            field.start()
        assert eventually(lambda: all_shown(history), 90), (left.states(), right.states())
        switched = [field.switched(name) for field in (left, right) for name in field.names]
        left.kill()
        goes_on(right)
        left.start()
        for field in (left, right):
            goes_on(field)
            assert {run.board for run in Store(field.folder / "store").runs()} == set(field.names)
        assert [field.switched(name) for field in (left, right) for name in field.names] == switched
        with ThreadPoolExecutor() as both:
            assert list(both.map(Field.stop, (left, right))) == [0, 0]
        same_anew(history, left, right, tmp_path)
        said = command_line("web", "--database", server.url, "--into", str(tmp_path / "site"), cwd=tmp_path)
        assert said.returncode == 0, said.stderr
        assert all((tmp_path / "site" / "board" / name).exists() for names in RACKS for name in names)
        before = rows_of(history, right)
        said = command_line("farm", "rebuild", str(left.file))
        assert said.returncode == 0, said.stderr
        assert rows_of(history, right) == before != Counter() != rows_of(history, left)
        same_anew(history, left, right, tmp_path)
