# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a board's tail are found where they are, once, and not where nothing changed."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import delete, insert, select

from fastenough.analysis.changes import LEVEL
from fastenough.farm.history_update import find_tail_changes
from fastenough.history import OWNER, PUBLIC, History, UnknownBoard, catch_up, changes
from fastenough.history.board_status import main_series
from fastenough.history.schema import ALL_CPUS, BOARD, CYCLE, CYCLE_S, NOW
from fastenough.history.tail import TailWatch, equally_measured, last_good, tail_points
from tests.support.farm_data import END_S, LIMIT_NS, FarmData, make_store

CYCLES = 80


def cycles(random: np.random.Generator, changed: int | None = None, times: float = 2.0) -> list[int]:
    """Greatest values of cycles, as machines have them, so many times as great from one cycle on."""
    values = random.gumbel(60_000, 5_000, CYCLES)
    if changed is not None:
        values[changed:] *= times
    return [round(value) for value in values]


def begins(n: int = CYCLES) -> list[int]:
    return [END_S - (n - number) * CYCLE_S for number in range(n)]


@pytest.mark.parametrize("changed", [15, 40, 60])
def test_a_change_is_found_at_its_cycle(changed: int) -> None:
    for seed in range(5):
        found = tail_points(begins(), cycles(np.random.default_rng(seed), changed))
        assert len(found) == 1
        assert abs(found[0].at_s - begins()[changed]) <= CYCLE_S
        assert 1.8 < found[0].now_ns / found[0].was_ns < 2.2


def test_where_nothing_changed_a_change_is_found_no_more_often_than_stated() -> None:
    random = np.random.default_rng(3)
    wrong = sum(bool(tail_points(begins(), cycles(random))) for _ in range(200))
    assert wrong <= 7, f"more than the 99.9 % quantile of 200 at {LEVEL}"


def test_cycles_that_measured_longer_are_no_change() -> None:
    """One hour of each cycle, then twelve: the greatest of twelve times as many values is greater."""
    hours = np.where(np.arange(CYCLES) < CYCLES // 2, 1, 12)
    for seed in range(5):
        random = np.random.default_rng(seed)
        greatest = [round(float(random.gumbel(60_000, 5_000, number).max())) for number in hours]
        assert tail_points(begins(), greatest), "without the exposures there would be a change"
        alike = equally_measured(hours * 3_600_000)
        assert alike.sum() == CYCLES // 2 and alike[-1]
        assert not tail_points(
            [at for at, yes in zip(begins(), alike, strict=True) if yes],
            [value for value, yes in zip(greatest, alike, strict=True) if yes],
        )


def test_too_few_cycles_say_nothing() -> None:
    assert tail_points(begins(49), cycles(np.random.default_rng(1), 25)[:49]) == []


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> tuple[FarmData, History]:
    folder = tmp_path_factory.mktemp("farm")
    data = make_store(folder / "store", boards=4, days=1)
    history = History.at(f"sqlite:///{folder}/history.sqlite")
    catch_up(history, data.store)
    return data, history


def give_cycles(history: History, name: str, values: list[int]) -> None:
    """Instead of the cycles that a board has, these, which end with the newest."""
    with history.writing() as connection:
        board = connection.execute(select(BOARD.c.id).where(BOARD.c.name == name)).scalar_one()
        series = main_series(connection)[board]
        row = (
            connection.execute(select(CYCLE).where(CYCLE.c.board == board, CYCLE.c.cpu == ALL_CPUS).limit(1))
            .mappings()
            .one()
        )
        newest_s = connection.execute(select(NOW.c.newest_s).where(NOW.c.board == board)).scalar_one()
        connection.execute(delete(CYCLE).where(CYCLE.c.board == board, CYCLE.c.series == series))
        end_s = newest_s // CYCLE_S * CYCLE_S
        connection.execute(
            insert(CYCLE),
            [
                {**row, "begin_s": end_s - (len(values) - number) * CYCLE_S, "max_ns": value}
                for number, value in enumerate(values)
            ],
        )


def test_a_change_is_noted_once_with_what_stands_beside_it(farm: tuple[FarmData, History]) -> None:
    _, history = farm
    give_cycles(history, "r1s1", cycles(np.random.default_rng(1), 40))
    watch = TailWatch()
    found = watch.look(history)
    assert [change.board for change in found] == ["r1s1"]
    assert watch.look(history) == TailWatch().look(history) == []
    noted = [change for change in changes(history, OWNER, "r1s1", 0, 2**40) if change.kind == "tail"]
    assert [change.at_s for change in noted] == [found[0].at_s]
    assert noted[0].was.endswith("µs")


def test_a_farm_notes_changes_by_itself(farm: tuple[FarmData, History]) -> None:
    data, history = farm
    give_cycles(history, "r1s2", cycles(np.random.default_rng(2), 30))
    order = {"store": str(data.store.path), "database": str(history.engine.url)}
    assert find_tail_changes(order) == {"changed": ["r1s2"]}
    assert find_tail_changes(order) == {"changed": []}
    assert "tail" in {change.kind for change in changes(history, OWNER, "r1s2", 0, 2**40)}


def test_the_last_run_that_kept_its_limit_is_named(farm: tuple[FarmData, History]) -> None:
    data, history = farm
    name = data.injected.board
    assert last_good(history, OWNER, name, END_S) is None, "no limit is stated"
    data.declare(history)
    runs = [run.id for run in data.store.runs(board=name)]
    found = last_good(history, OWNER, name, END_S)
    assert data.injected.run in runs[1:]
    assert found == runs[runs.index(data.injected.run) - 1]
    assert max(total.maximum or 0 for total in data.store.load(found).totals.values()) <= LIMIT_NS
    with pytest.raises(UnknownBoard):
        last_good(history, PUBLIC, data.private, END_S)
