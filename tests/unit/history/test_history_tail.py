# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a board's tail are found where they are, once, and not where nothing changed."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import delete, insert, select, update

from fastenough.farm.history_update import TailOrder, find_tail_changes
from fastenough.history import OWNER, PUBLIC, BoardChange, History, UnknownBoard, catch_up, changes
from fastenough.history.board_status import main_series
from fastenough.history.schema import ALL_CPUS, BOARD, CHANGE, CYCLE, CYCLE_S, NOW
from fastenough.history.tail import (
    APART_S,
    TailPoint,
    TailWatch,
    equally_measured,
    last_good,
    mean_between,
    tail_points,
)
from tests.support.farm_data import END_S, LIMIT_NS, FarmData, make_store

pytestmark = pytest.mark.check

CYCLES = 80


def cycles(random: np.random.Generator, changed: int | None = None, times: float = 2.0) -> list[int]:
    """Greatest values of cycles, as machines have them, so many times as great from one cycle on."""
    values = random.gumbel(60_000, 5_000, CYCLES)
    if changed is not None:
        values[changed:] *= times
    return [round(value) for value in values]


def begins(n: int = CYCLES) -> list[int]:
    return [END_S - (n - number) * CYCLE_S for number in range(n)]


def points(values: list[int], counts: list[int] | None = None, boards: int = 200) -> list[TailPoint]:
    return tail_points(begins(len(values)), values, counts or [1000] * len(values), mean_between(boards, 1.0))


@pytest.mark.parametrize("changed", [30, 40, 60])
def test_a_change_is_found_at_its_cycle(changed: int) -> None:
    for seed in range(5):
        found = points(cycles(np.random.default_rng(seed), changed))
        assert len(found) == 1 and found[0].until_s is None and found[0].withdrawn_s is None
        assert abs(found[0].at_s - begins()[changed]) <= CYCLE_S
        assert found[0].noted_s <= begins()[changed] + 20 * CYCLE_S
        assert 1.8 < found[0].now_ns / found[0].was_ns < 2.3


def test_later_cycles_do_not_change_when_a_change_was_noted() -> None:
    values = cycles(np.random.default_rng(4), 40)
    noted = {end: [point.noted_s - begins(end)[0] for point in points(values[:end])] for end in range(40, CYCLES + 1)}
    first = next(end for end, times in noted.items() if times)
    assert noted[first] == [first * CYCLE_S]
    assert all(times == noted[first] for end, times in noted.items() if end >= first)


def test_the_threshold_follows_from_false_changes_of_a_farm() -> None:
    assert mean_between(256, 1.0) == mean_between(129, 1.0) == 256 * 730.5
    assert mean_between(1, 0.5) == 2 * 730.5


def test_cycles_that_measured_longer_are_no_change() -> None:
    """One hour of each cycle, then twelve: the greatest of twelve times as many values is greater."""
    hours = np.where(np.arange(CYCLES) < CYCLES // 2, 1, 12)
    for seed in range(5):
        random = np.random.default_rng(seed)
        greatest = [round(float(random.gumbel(60_000, 5_000, number).max())) for number in hours]
        assert points(greatest, boards=1), "without the exposures there would be a change"
        assert not points(greatest, [int(number) * 3_600_000 for number in hours], boards=1)


def test_cycles_are_grouped_by_how_long_they_measured() -> None:
    assert [places.tolist() for places in equally_measured([100, 110, 1200, 95, 1210, 40])] == [[0, 1, 3], [2, 4], [5]]


def test_too_few_cycles_say_nothing() -> None:
    assert points(cycles(np.random.default_rng(1), 10)[:20]) == []


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


def tail_changes(history: History, name: str) -> list[BoardChange]:
    return [change for change in changes(history, OWNER, name, 0, 2**40) if change.noted_s is not None]


def test_a_change_is_noted_once_with_what_stands_beside_it(farm: tuple[FarmData, History]) -> None:
    data, history = farm
    give_cycles(history, "r1s1", cycles(np.random.default_rng(1), 40))
    watch = TailWatch(data.boards, 1.0)
    found = watch.look(history)
    assert list(found) == ["r1s1"]
    assert watch.look(history) == TailWatch(data.boards, 1.0).look(history) == {}
    assert [(change.kind, change.at_s, change.noted_s) for change in tail_changes(history, "r1s1")] == [
        ("tail", found["r1s1"][0].at_s, found["r1s1"][0].noted_s)
    ]
    assert tail_changes(history, "r1s1")[0].was.endswith("µs")
    with history.writing() as connection:
        before = connection.execute(select(CHANGE)).all()
        connection.execute(delete(CHANGE).where(CHANGE.c.noted_s.is_not(None)))
    TailWatch(data.boards, 1.0).look(history)
    with history.reading() as connection:
        assert {row[1:] for row in connection.execute(select(CHANGE))} == {row[1:] for row in before}, "as noted before"


def test_a_change_that_moves_is_not_new(farm: tuple[FarmData, History]) -> None:
    data, history = farm
    give_cycles(history, "r1s1", cycles(np.random.default_rng(1), 40))
    TailWatch(data.boards, 1.0).look(history)
    with history.writing() as connection:
        mine = update(CHANGE).where(CHANGE.c.noted_s.is_not(None))
        connection.execute(mine.values(noted_s=CHANGE.c.noted_s - APART_S + 1, at_s=CHANGE.c.at_s + 1))
    assert TailWatch(data.boards, 1.0).look(history) == {}


def test_a_trend_is_shown_in_each_range_that_it_touches(farm: tuple[FarmData, History]) -> None:
    _, history = farm
    with history.writing() as connection:
        board = connection.execute(select(BOARD.c.id).where(BOARD.c.name == "r1s3")).scalar_one()
        row = {"kind": "tail", "key": "timer/wakeup", "was": "60 µs", "now": "80 µs", "latency": True}
        added = {"board": board, "at_s": 1000, "until_s": 3000, "noted_s": 2500}
        number = connection.execute(insert(CHANGE).values(**row, **added).returning(CHANGE.c.id)).scalar_one()
    found = {
        span: len(changes(history, OWNER, "r1s3", *span)) for span in ((0, 1000), (0, 1001), (2000, 2001), (3001, 4000))
    }
    with history.writing() as connection:
        connection.execute(delete(CHANGE).where(CHANGE.c.id == number))
    assert list(found.values()) == [0, 1, 1, 0]


def test_boards_of_other_farms_are_left_alone(farm: tuple[FarmData, History]) -> None:
    _, history = farm
    give_cycles(history, "r1s3", cycles(np.random.default_rng(1), 40))
    assert TailWatch(["r1s1"], 1.0).look(history) == {}
    assert tail_changes(history, "r1s3") == []


def test_a_farm_notes_changes_by_itself(farm: tuple[FarmData, History]) -> None:
    data, history = farm
    give_cycles(history, "r1s2", cycles(np.random.default_rng(2), 30))
    order: TailOrder = {
        "farm": "f",
        "coordinator": "",
        "state": "",
        "store": str(data.store.path),
        "database": str(history.engine.url),
        "names": ["r1s2"],
        "false_changes": 1.0,
    }
    assert find_tail_changes(order) == {"changed": ["r1s2"]}
    assert find_tail_changes(order) == {"changed": []}
    assert [change.kind for change in tail_changes(history, "r1s2")] == ["tail"]


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
