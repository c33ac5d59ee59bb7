# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards are searched, sorted and grouped in the database as if the status of each were computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from fastenough.history import (
    OWNER,
    PUBLIC,
    BoardCondition,
    BoardFilter,
    BoardOrder,
    BoardSort,
    BoardStatus,
    GroupKind,
    History,
    SummaryRefresher,
    board_groups,
    board_page,
    board_statuses,
    board_totals,
    boards_after,
    declare,
    group_names,
    refresh_summaries,
)
from fastenough.history.schema import SUMMARY
from tests.support.many_boards import END_S, KERNELS, SITES, make_boards, name_of, set_condition

COUNT = 240


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    found = History.at(f"sqlite:///{tmp_path_factory.mktemp('many')}/history.sqlite")
    found.wall_s = lambda: END_S
    make_boards(found, COUNT, private_every=50)
    set_condition(found, 7, BoardCondition.DEAD)
    yield found
    found.close()


def page(history: History, wanted: BoardFilter, order: BoardOrder | None = None) -> list[BoardStatus]:
    return board_page(history, PUBLIC, wanted, order or BoardOrder(), (0, COUNT), END_S)


def names(found: list[BoardStatus]) -> list[str]:
    return [one.board.name for one in found]


def test_all_boards_are_those_of_their_statuses_in_the_same_order(history: History) -> None:
    exact = board_statuses(history, PUBLIC, END_S)
    assert page(history, BoardFilter()) == exact
    assert len(exact) == COUNT - 5
    counted = {state: sum(one.state is state for one in exact) for state in {one.state for one in exact}}
    totals = board_totals(history, PUBLIC, BoardFilter(), END_S, 900)
    assert (dict(totals.conditions), totals.newest_s) == (counted, END_S)
    assert board_totals(history, OWNER, BoardFilter(), END_S, 900).boards == COUNT


@pytest.mark.check
@pytest.mark.parametrize("descending", [False, True])
def test_boards_are_sorted_by_each_key(history: History, descending: bool) -> None:
    keys = {
        BoardSort.NAME: lambda one: one.board.name,
        BoardSort.KERNEL: lambda one: one.board.kernel,
        BoardSort.MAX_30D: lambda one: one.max_30d_ns,
        BoardSort.MAX_5MIN: lambda one: one.max_5min_ns,
        BoardSort.MAX_24H: lambda one: one.max_24h_ns,
        BoardSort.SEEN: lambda one: one.seen_s,
        BoardSort.STATE: lambda one: one.state.rank,
        BoardSort.LIMIT: lambda one: one.board.limit_ns,
    }
    exact = sorted(board_statuses(history, PUBLIC, END_S), key=lambda one: one.board.name)
    for sort, key in keys.items():
        expected = names(sorted(exact, key=key, reverse=descending))
        assert names(page(history, BoardFilter(), BoardOrder(sort, descending))) == expected, sort
    last = page(history, BoardFilter(), BoardOrder(BoardSort.VERDICT, descending))[-1]
    assert last.verdict == "", "what is not known comes last"


def test_filters_find_what_they_say(history: History) -> None:
    exact = board_statuses(history, PUBLIC, END_S)
    for wanted, meets in (
        (BoardFilter(text="MODEL 3"), lambda one: one.board.model == "Model 3"),
        (BoardFilter(text="_"), lambda one: False),
        (BoardFilter(text="gateway-00013"), lambda one: one.board.name == "gateway-00013"),
        (BoardFilter(group=(GroupKind.KERNEL, KERNELS[1])), lambda one: one.board.kernel == KERNELS[1]),
        (BoardFilter(group=(GroupKind.SITE, "linz")), lambda one: one.board.site == "linz"),
        (BoardFilter(state=BoardCondition.SILENT), lambda one: one.state is BoardCondition.SILENT),
        (BoardFilter(verdict="none"), lambda one: not one.verdict),
        (BoardFilter(within_ns=21_000), lambda one: one.max_30d_ns <= 21_000),
    ):
        assert page(history, wanted) == [one for one in exact if meets(one)], wanted


def test_a_cursor_visits_each_board_once(history: History) -> None:
    seen: list[str] = []
    while found := boards_after(history, PUBLIC, BoardFilter(), seen[-1] if seen else "", 33, END_S):
        seen += names(found)
    assert seen == sorted(names(board_statuses(history, PUBLIC, END_S)))


def test_boards_turn_silent_without_a_new_summary(history: History) -> None:
    later_s = END_S + 3000
    assert board_totals(history, PUBLIC, BoardFilter(), later_s, 900).conditions == {
        BoardCondition.DEAD: 1,
        BoardCondition.SILENT: COUNT - 6,
    }


def test_a_group_has_the_distribution_over_its_boards(history: History) -> None:
    exact = board_statuses(history, PUBLIC, END_S)
    assert group_names(history, PUBLIC, 50)[GroupKind.SITE] == SITES
    assert GroupKind.RACK not in group_names(history, PUBLIC, 5)
    for one in board_groups(history, PUBLIC, GroupKind.SITE, END_S):
        values = sorted(status.max_30d_ns or 0 for status in exact if status.board.site == one.name)
        n = len(values)
        expected = [values[max(0, -(-n * percent // 100) - 1)] for percent in (0, 10, 50, 90, 100)]
        assert (one.boards, list(one.max_30d_ns)) == (n, expected), one.name


def test_what_is_declared_is_searched_after_the_next_refresh(history: History, tmp_path: Path) -> None:
    with_more = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    declare(with_more, "press-1", site="wels", public=True)
    assert refresh_summaries(with_more, END_S) == 1
    assert refresh_summaries(with_more, END_S) == 0
    declare(with_more, "press-1", site="wels", public=True)
    assert refresh_summaries(with_more, END_S) == 0, "nothing changed"
    declare(with_more, "press-1", site="graz")
    assert refresh_summaries(with_more, END_S) == 1
    assert names(board_page(with_more, PUBLIC, BoardFilter(text="graz"), BoardOrder(), (0, 9), END_S)) == ["press-1"]
    assert refresh_summaries(with_more, END_S + 3601) == 1, "an hour has passed"
    with_more.close()


def test_names_with_sql_in_them_are_names(history: History, tmp_path: Path) -> None:
    hostile = "x'; DROP TABLE board; --%_\\"
    other = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    declare(other, hostile, rack=hostile, public=True)
    refresh_summaries(other, END_S)
    for wanted in (BoardFilter(text=hostile), BoardFilter(group=(GroupKind.RACK, hostile))):
        assert names(board_page(other, PUBLIC, wanted, BoardOrder(), (0, 9), END_S)) == [hostile]
    assert boards_after(other, PUBLIC, BoardFilter(), hostile, 9, END_S) == []
    other.close()


def test_outdated_summaries_are_computed_in_parts(history: History) -> None:
    with history.writing() as connection:
        connection.execute(update(SUMMARY).values(at_s=0))
    while refresh_summaries(history, END_S, 37):
        pass
    with history.reading() as connection:
        assert connection.execute(select(func.count()).select_from(SUMMARY)).scalar() == COUNT
    assert names(page(history, BoardFilter()))[0] == name_of(7)


def test_a_refresher_reads_the_boards_again_after_a_while_or_while_there_are_more(tmp_path: Path) -> None:
    many = History.at(f"sqlite:///{tmp_path}/many.sqlite")
    make_boards(many, 11, refresh=False)
    now_s = [0.0]
    calls: list[float] = []

    def wall_s() -> float:
        calls.append(END_S + now_s[0])
        return calls[-1]

    many.wall_s = wall_s
    refresh = SummaryRefresher(many, lambda: now_s[0], most=5)
    for _ in range(5):
        refresh()
    assert len(calls) == 3, "11 boards, at most 5 at a time"
    assert board_totals(many, PUBLIC, BoardFilter(), END_S, 900).boards == 11
    now_s[0] = 3700.0
    assert refresh_summaries(many, END_S + 3700, 1) == 1, "an hour has passed"
    refresh()
    assert len(calls) == 4
    many.close()
