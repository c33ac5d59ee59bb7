# SPDX-License-Identifier: GPL-2.0-or-later
"""Search, sort, page and group boards in the database, by a summary row for each of them.

The summary of a board is computed again whenever data of the board are stored.  Values that depend on time alone, such
as the maximum of 24 hours of a silent board, are at most an hour old; whether a board is silent is exact.  A page shows
the exact status of the boards that it has found by their summaries.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, or_, select

from fastenough.history.access import seen_by
from fastenough.history.board_status import NOT_DUE, statuses_of
from fastenough.history.database import History, put
from fastenough.history.results import BoardCondition, BoardStatus, Viewer
from fastenough.history.schema import BOARD, HOUR_S, SUMMARY

MOST_AT_ONCE = 500
"""Most summaries that are computed in one transaction."""
IDLE_S = 30.0
_CONDITIONS = tuple(BoardCondition)
_SILENT = BoardCondition.SILENT.rank
_MOST_WORD = 200
_NAME, _RANK = "group_name", "rank_now"
"""Labels to group by: PostgreSQL takes two equal expressions with parameters for different ones."""

_Rows = Select[*tuple[Any, ...]]
"""A query of several columns."""


class GroupKind(StrEnum):
    """Property that boards are grouped by."""

    TYPE = "type"
    SITE = "site"
    KERNEL = "kernel"
    RACK = "rack"


class BoardSort(StrEnum):
    """Value that boards are sorted by; unknown values come last."""

    STATE = "state"
    NAME = "board"
    KERNEL = "kernel"
    MAX_5MIN = "max_5min"
    MAX_24H = "max_24h"
    MAX_30D = "max_30d"
    LIMIT = "limit"
    VERDICT = "verdict"
    SEEN = "seen"


_GROUPS: Mapping[GroupKind, ColumnElement[Any]] = {
    GroupKind.TYPE: BOARD.c.type,
    GroupKind.SITE: BOARD.c.site,
    GroupKind.KERNEL: func.coalesce(SUMMARY.c.kernel, ""),
    GroupKind.RACK: BOARD.c.rack,
}
_SORTS: Mapping[BoardSort, ColumnElement[Any]] = {
    BoardSort.NAME: BOARD.c.name,
    BoardSort.KERNEL: func.nullif(SUMMARY.c.kernel, ""),
    BoardSort.MAX_5MIN: SUMMARY.c.max_5min_ns,
    BoardSort.MAX_24H: SUMMARY.c.max_24h_ns,
    BoardSort.MAX_30D: SUMMARY.c.max_30d_ns,
    BoardSort.LIMIT: func.coalesce(BOARD.c.plan_limit_ns, BOARD.c.limit_ns),
    BoardSort.VERDICT: func.nullif(SUMMARY.c.verdict, ""),
    BoardSort.SEEN: SUMMARY.c.seen_s,
}


@dataclass(frozen=True)
class BoardFilter:
    """Conditions on boards, all of which must hold.

    ``name``: the whole name of a board.  ``text``: part of a name, kernel, model or the like.  ``group``: a kind of
    group and its name, which is empty for boards whose group is unknown.  ``within_ns``: greatest allowed maximum of 30
    days.  ``verdict``: "none" for boards that are not judged.
    """

    name: str = ""
    text: str = ""
    group: tuple[GroupKind, str] | None = None
    state: BoardCondition | None = None
    verdict: str = ""
    within_ns: int | None = None


@dataclass(frozen=True)
class BoardOrder:
    """Order of boards; boards with the same value are ordered by name."""

    sort: BoardSort = BoardSort.STATE
    descending: bool = False


@dataclass(frozen=True)
class BoardTotals:
    """Number of boards that a filter selects, by condition; ``newest_s``: end of their newest interval."""

    conditions: Mapping[BoardCondition, int]
    newest_s: int | None

    @property
    def boards(self) -> int:
        return sum(self.conditions.values())


QUANTILES = (0, 10, 50, 90, 100)
"""Quantiles over the boards of a group, in percent."""


@dataclass(frozen=True)
class BoardGroup:
    """A group.  ``name``: empty for boards whose group is unknown.  ``boards``: number of its boards.

    ``conditions``: number of boards by condition.  ``max_30d_ns``: `QUANTILES` of the maxima of 30 days of its boards
    that have one; empty if no board has one.
    """

    name: str
    boards: int
    conditions: Mapping[BoardCondition, int]
    max_30d_ns: tuple[int, ...]


def refresh_summaries(history: History, now_s: int, most: int = MOST_AT_ONCE) -> int:
    """Compute outdated summaries again, the oldest first; returns the number of boards."""
    with history.reading() as connection:
        numbers = [int(number) for number in connection.scalars(_outdated(now_s).limit(most))]
    if numbers:
        with history.writing() as connection:
            put_summaries(connection, numbers, now_s)
    return len(numbers)


class SummaryRefresher:
    """Computes outdated summaries again when it is called.

    After a call that failed or that found few of them, calls do nothing for `IDLE_S`: finding them reads all boards.
    """

    def __init__(self, history: History, clock: Callable[[], float] = time.monotonic, most: int = MOST_AT_ONCE) -> None:
        self._history, self._clock, self._most = history, clock, most
        self._next_s = clock()

    def __call__(self) -> None:
        if self._clock() < self._next_s:
            return
        self._next_s = self._clock() + IDLE_S
        if refresh_summaries(self._history, int(self._history.wall_s()), self._most) == self._most:
            self._next_s = self._clock()


def _outdated(now_s: int) -> Select[Any]:
    at_s = func.coalesce(SUMMARY.c.at_s, 0)
    return (
        select(BOARD.c.id)
        .outerjoin(SUMMARY, SUMMARY.c.board == BOARD.c.id)
        .where(or_(at_s < now_s - HOUR_S, at_s > now_s + HOUR_S))
        .order_by(at_s, BOARD.c.id)
    )


def put_summaries(connection: Connection, numbers: Collection[int], now_s: int) -> None:
    """Compute the summaries of these boards, as the last step of a transaction, because it locks their rows.

    Rows that another transaction has locked are left to it.
    """
    mine = SUMMARY.c.board.in_(numbers)
    free = set(
        connection.scalars(
            select(SUMMARY.c.board).where(mine).order_by(SUMMARY.c.board).with_for_update(skip_locked=True)
        )
    )
    busy = set(connection.scalars(select(SUMMARY.c.board).where(mine))) - free
    chosen = select(BOARD.c.id).where(BOARD.c.id.in_(sorted(set(numbers) - busy)))
    number_of = {
        name: number
        for number, name in connection.execute(select(BOARD.c.id, BOARD.c.name).where(BOARD.c.id.in_(chosen)))
    }
    rows = [_row(number_of[status.board.name], status, now_s) for status in statuses_of(connection, chosen, now_s)]
    put(connection, SUMMARY, sorted(rows, key=lambda row: int(row["board"])))


def _row(number: int, status: BoardStatus, now_s: int) -> dict[str, Any]:
    board = status.board
    texts = (board.name, board.kernel, board.arch, board.rack, board.type, board.site, board.model)
    return {
        "board": number,
        "at_s": now_s,
        "rank": status.state.rank,
        "silent_from_s": None if status.seen_s is None else status.seen_s + status.silent_after_s,
        "seen_s": status.seen_s,
        "max_5min_ns": status.max_5min_ns,
        "max_24h_ns": status.max_24h_ns,
        "max_30d_ns": status.max_30d_ns,
        "kernel": board.kernel[:_MOST_WORD],
        "verdict": status.verdict,
        "search_text": " ".join((*texts, board.preemption, board.configuration)).lower(),
    }


def _rank(now_s: int) -> ColumnElement[int]:
    """Rank of the condition of a board, which can become silent without any new data."""
    due = and_(BOARD.c.is_declared, BOARD.c.state.not_in([str(state) for state in NOT_DUE]))
    turned = and_(due, SUMMARY.c.rank > _SILENT, SUMMARY.c.silent_from_s < now_s)
    return case((turned, _SILENT), else_=func.coalesce(SUMMARY.c.rank, BoardCondition.NO_DATA.rank))


def _chosen(question: _Rows, viewer: Viewer, board_filter: BoardFilter, now_s: int) -> _Rows:
    """Restrict a query to the boards that the viewer may see and that pass the filter."""
    rows = seen_by(question.select_from(BOARD).outerjoin(SUMMARY, SUMMARY.c.board == BOARD.c.id), viewer)
    if board_filter.name:
        rows = rows.where(BOARD.c.name == board_filter.name)
    if board_filter.text:
        rows = rows.where(SUMMARY.c.search_text.contains(board_filter.text.lower(), autoescape=True))
    if board_filter.group is not None:
        kind, name = board_filter.group
        rows = rows.where(_GROUPS[kind] == name)
    if board_filter.state is not None:
        rows = rows.where(_rank(now_s) == board_filter.state.rank)
    if board_filter.verdict:
        rows = rows.where(
            func.coalesce(SUMMARY.c.verdict, "") == ("" if board_filter.verdict == "none" else board_filter.verdict)
        )
    if board_filter.within_ns is not None:
        rows = rows.where(SUMMARY.c.max_30d_ns <= board_filter.within_ns)
    return rows


def _sorted(rows: _Rows, order: BoardOrder, now_s: int) -> _Rows:
    by_state = order.sort is BoardSort.STATE
    key = _rank(now_s) if by_state else _SORTS[order.sort]
    unknown_last = () if by_state else (key.is_(None),)  # the state is never unknown
    return rows.order_by(*unknown_last, key.desc() if order.descending else key, BOARD.c.name)


def board_totals(history: History, viewer: Viewer, board_filter: BoardFilter, now_s: int, ahead_s: int) -> BoardTotals:
    """Totals of a filter.  ``ahead_s``: data further in the future come from a wrong clock, and are not the newest."""
    known_s = case((SUMMARY.c.seen_s <= now_s + ahead_s, SUMMARY.c.seen_s))
    rank = _rank(now_s).label(_RANK)
    question: _Rows = select(rank, func.count(), func.max(known_s), func.max(SUMMARY.c.seen_s))
    with history.reading() as connection:
        rows = connection.execute(_chosen(question, viewer, board_filter, now_s).group_by(_RANK)).all()
    known, any_s = ([row[place] for row in rows if row[place] is not None] for place in (2, 3))
    return BoardTotals({_CONDITIONS[row[0]]: row[1] for row in sorted(rows)}, max(known or any_s, default=None))


def has_more_boards(history: History, viewer: Viewer, board_filter: BoardFilter, most: int, now_s: int) -> bool:
    """Whether a filter has more than ``most`` boards.  Much less work than the totals of ten thousand boards."""
    question = _chosen(select(BOARD.c.id), viewer, board_filter, now_s).limit(most + 1)
    with history.reading() as connection:
        return len(connection.execute(question).all()) > most


def board_page(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, board_filter: BoardFilter, order: BoardOrder, span: tuple[int, int], now_s: int
) -> list[BoardStatus]:
    """The exact status of the boards at the places ``span[0]`` to ``span[1] - 1`` of an order."""
    with history.reading() as connection:
        question = _sorted(_chosen(select(BOARD.c.id, BOARD.c.name), viewer, board_filter, now_s), order, now_s)
        return _in_order(connection, question.offset(span[0]).limit(span[1] - span[0]), now_s)


def boards_after(  # noqa: PLR0917 - as above
    history: History, viewer: Viewer, board_filter: BoardFilter, after: str, most: int, now_s: int
) -> list[BoardStatus]:
    """The exact status of at most ``most`` boards whose names follow ``after``, by name."""
    with history.reading() as connection:
        rows = _chosen(select(BOARD.c.id, BOARD.c.name), viewer, board_filter, now_s).where(BOARD.c.name > after)
        return _in_order(connection, rows.order_by(BOARD.c.name).limit(most), now_s)


def numbers_by_urgency(history: History, viewer: Viewer, now_s: int) -> list[int]:
    """Numbers of all boards that the viewer may see, the most urgent first by their summaries, then by name."""
    question = _chosen(select(BOARD.c.id, BOARD.c.name), viewer, BoardFilter(), now_s)
    with history.reading() as connection:
        return [int(row[0]) for row in connection.execute(_sorted(question, BoardOrder(), now_s))]


def statuses_by_number(history: History, viewer: Viewer, numbers: Collection[int], now_s: int) -> list[BoardStatus]:
    """The exact status of these boards, the most urgent first, then by name; without those that the viewer may not
    see."""
    with history.reading() as connection:
        chosen = seen_by(select(BOARD.c.id).where(BOARD.c.id.in_(numbers)), viewer)
        statuses = statuses_of(connection, chosen, now_s)
    return sorted(statuses, key=lambda status: (status.state.rank, status.board.name))


def _in_order(connection: Connection, question: Select[Any], now_s: int) -> list[BoardStatus]:
    names = {number: name for number, name in connection.execute(question)}
    if not names:
        return []
    statuses = {
        status.board.name: status
        for status in statuses_of(connection, select(BOARD.c.id).where(BOARD.c.id.in_(list(names))), now_s)
    }
    return [statuses[name] for name in names.values() if name in statuses]


def group_names(history: History, viewer: Viewer, most: int) -> dict[GroupKind, tuple[str, ...]]:
    """Names of all known groups, by kind; kinds with more than ``most`` groups are omitted."""
    groups: dict[GroupKind, tuple[str, ...]] = {}
    with history.reading() as connection:
        for kind, column in _GROUPS.items():
            question = _chosen(select(column).distinct(), viewer, BoardFilter(), 0).where(column != "")
            names = sorted(connection.scalars(question.limit(most + 1)))
            if 0 < len(names) <= most:
                groups[kind] = tuple(names)
    return groups


def board_groups(history: History, viewer: Viewer, kind: GroupKind, now_s: int) -> list[BoardGroup]:
    """All groups of a kind, by name."""
    return groups_by_kind(history, viewer, (kind,), now_s)[kind]


def groups_by_kind(
    history: History, viewer: Viewer, kinds: Sequence[GroupKind], now_s: int
) -> dict[GroupKind, list[BoardGroup]]:
    """All groups of some kinds, by name.  The boards are read once: the database would sort them for each kind."""
    columns = [_GROUPS[kind].label(kind) for kind in kinds]
    question: _Rows = select(_rank(now_s).label(_RANK), SUMMARY.c.max_30d_ns, *columns)
    with history.reading() as connection:
        rows = connection.execute(_chosen(question, viewer, BoardFilter(), now_s)).all()
    if not rows:
        return {kind: [] for kind in kinds}
    ranks, maxima, *names = zip(*rows, strict=True)
    return {kind: _groups(of_kind, ranks, maxima) for kind, of_kind in zip(kinds, names, strict=True)}


def _groups(names: Sequence[str], ranks: Sequence[int], maxima_ns: Sequence[int | None]) -> list[BoardGroup]:
    """The groups of boards, of each of which its name of the group, rank and maximum are given."""
    values: dict[str, list[int]] = {}
    for name, max_ns in zip(names, maxima_ns, strict=True):
        held = values.setdefault(name, [])
        if max_ns is not None:
            held.append(max_ns)
    counts: dict[str, dict[BoardCondition, int]] = {name: {} for name in sorted(values)}
    for (name, place), count in sorted(Counter(zip(names, ranks, strict=True)).items()):
        counts[name][_CONDITIONS[place]] = count
    return [
        BoardGroup(name, sum(conditions.values()), conditions, _quantiles(sorted(values[name])))
        for name, conditions in counts.items()
    ]


def _quantiles(ordered: Sequence[int]) -> tuple[int, ...]:
    """The values at `QUANTILES`; each is the value of a board."""
    return tuple(ordered[_place(len(ordered), percent) - 1] for percent in QUANTILES) if ordered else ()


def _place(size: int, percent: int) -> int:
    """Place of a quantile among ``size`` values in order, from 1 on."""
    return (size * percent + 99) // 100 if percent else 1


def totals_of(statuses: Sequence[BoardStatus]) -> dict[BoardCondition, int]:
    """Number of boards by condition, the most urgent first."""
    counts = {condition: sum(status.state is condition for status in statuses) for condition in _CONDITIONS}
    return {condition: count for condition, count in counts.items() if count}
