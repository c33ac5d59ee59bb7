# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a board's latency tail, and the last run within its limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, insert, select

from fastenough import words
from fastenough.analysis.changes import change_points
from fastenough.analysis.maxima import Maxima
from fastenough.history.access import board_view, series_number
from fastenough.history.board_status import board_of, main_series
from fastenough.history.boards import lock_board
from fastenough.history.database import History
from fastenough.history.results import Viewer
from fastenough.history.schema import ALL_CPUS, BOARD, CHANGE, CYCLE, CYCLE_S, INTERVAL, NOW, RUN

TAIL = "tail"
KEY = "greatest value of a cycle"
_MOST_CYCLES = 399
"""Two hundred days: with more, change points would be sought among pairs of cycles."""
_NEWEST = 5
_MOST_UNEQUAL = 1.25
"""Cycles are compared whose numbers of values differ by no more than this factor from that of the newest."""
_BESIDE = 8
"""So many cycles beside where ranks place a change is it sought."""
_SAME_CYCLES = 3
"""A change found again, with more cycles behind it, may lie so many beside where it was first seen."""
_GOOD_WITHIN_S = 60 * 86400


@dataclass(frozen=True)
class TailChange:
    """A board's maxima were about ``was_ns`` before the cycle that begins at ``at_s``, and about ``now_ns`` from it
    on (medians)."""

    board: str
    at_s: int
    was_ns: int
    now_ns: int


@dataclass(frozen=True)
class TailPoint:
    """A change of the tail: medians of what lies before it and behind it, up to the changes beside it."""

    at_s: int
    was_ns: int
    now_ns: int


def tail_points(begins_s: Sequence[int], max_ns: Sequence[int]) -> list[TailPoint]:
    """Where the greatest values of cycles changed, in the order of time; nowhere of fewer than 50 cycles.

    That there is a change is shown by the ranks of :mod:`fastenough.analysis.changes`, which place it a few cycles off
    where one side is short; it is put where the values deviate least from the medians of both sides.
    """
    begins = np.array(begins_s[-_MOST_CYCLES:], dtype=np.int64)
    values = np.array(max_ns[-_MOST_CYCLES:], dtype=np.float64)
    found = change_points(Maxima(values, begins * 10**9, 1.0, CYCLE_S * 1e9))
    bounds = [0, *np.searchsorted(begins * 10**9, [point.wall_ns for point in found]).tolist(), values.size]
    for number in range(1, len(bounds) - 1):
        first, place, last = bounds[number - 1 : number + 2]
        bounds[number] = first + _best_split(values[first:last], place - first)
    medians = [round(float(np.median(values[first:last]))) for first, last in pairwise(bounds) if last > first]
    return [
        TailPoint(int(begins[place]), medians[number], medians[number + 1]) for number, place in enumerate(bounds[1:-1])
    ]


def equally_measured(counts: Sequence[int]) -> NDArray[np.bool_]:
    """Which cycles hold about as many values as the newest ones: of more values the greatest is greater.

    The reference is the median of the newest five, so that one cycle that was cut short decides nothing.
    """
    each = np.array(counts, dtype=np.float64)
    usual = float(np.median(each[-_NEWEST:])) if each.size else 0.0
    return (each >= usual / _MOST_UNEQUAL) & (each <= usual * _MOST_UNEQUAL)


def _best_split(values: NDArray[np.float64], near: int) -> int:
    places = range(max(1, near - _BESIDE), min(values.size, near + _BESIDE + 1))
    return min(places, key=lambda at: _spread(values[:at]) + _spread(values[at:]))


def _spread(values: NDArray[np.float64]) -> float:
    """How far values lie from their median, all together; ratios count, so that the lower side is heard too."""
    logarithms = np.log(np.maximum(values, 1.0))
    return float(np.abs(logarithms - np.median(logarithms)).sum())


class TailWatch:
    """Looks at each board's cycles once one more of them has closed, and notes what changed in the history."""

    def __init__(self) -> None:
        self._looked_at: dict[int, int] = {}

    def look(self, history: History) -> list[TailChange]:
        """The new changes; each is stored once, before it is returned."""
        with history.reading() as connection:
            main = main_series(connection)
            newest = {
                (row.board, row.series): int(row.newest_s)
                for row in connection.execute(select(NOW.c.board, NOW.c.series, NOW.c.newest_s))
            }
        tail_changes: list[TailChange] = []
        for board, series in main.items():
            closed_s = newest[board, series] // CYCLE_S * CYCLE_S
            if self._looked_at.get(board) != closed_s:
                with history.writing() as connection:
                    tail_changes += _noted(connection, board, series, closed_s)
                self._looked_at[board] = closed_s
        return tail_changes


def _noted(connection: Connection, board: int, series: int, closed_s: int) -> list[TailChange]:
    name = connection.execute(select(BOARD.c.name).where(BOARD.c.id == board)).scalar_one()
    lock_board(connection, name)
    rows = connection.execute(
        select(CYCLE.c.begin_s, CYCLE.c.max_ns, CYCLE.c.count.label("held"))
        .where(
            CYCLE.c.board == board,
            CYCLE.c.series == series,
            CYCLE.c.cpu == ALL_CPUS,
            CYCLE.c.begin_s < closed_s,
            CYCLE.c.count > 0,
        )
        .order_by(CYCLE.c.begin_s)
    ).all()
    alike = equally_measured([row.held for row in rows])
    rows = [row for row, compared in zip(rows, alike, strict=True) if compared]
    points = tail_points([row.begin_s for row in rows], [row.max_ns for row in rows])
    known = list(
        connection.execute(select(CHANGE.c.at_s).where(CHANGE.c.board == board, CHANGE.c.kind == TAIL)).scalars()
    )
    found = [TailChange(name, point.at_s, point.was_ns, point.now_ns) for point in points]
    new = [change for change in found if all(abs(change.at_s - at_s) > _SAME_CYCLES * CYCLE_S for at_s in known)]
    for change in new:
        connection.execute(
            insert(CHANGE).values(
                board=board,
                at_s=change.at_s,
                kind=TAIL,
                key=KEY,
                was=words.latency(change.was_ns),
                now=words.latency(change.now_ns),
                latency=True,
                last_run=_run_beside(connection, board, change.at_s, before=True),
                run=_run_beside(connection, board, change.at_s, before=False),
            )
        )
    return new


def _run_beside(connection: Connection, board: int, at_s: int, *, before: bool) -> int | None:
    """The last run that began before an instant, or the first that did not."""
    where = RUN.c.begin_s < at_s if before else RUN.c.begin_s >= at_s
    order = RUN.c.begin_s.desc() if before else RUN.c.begin_s
    return connection.execute(select(RUN.c.id).where(RUN.c.board == board, where).order_by(order).limit(1)).scalar()


def last_good(history: History, viewer: Viewer, name: str, before_s: int) -> str | None:
    """The last run that ended before an instant and holds nothing above the board's limit; None where there is none
    within 60 days, or no limit.  Raises UnknownBoard.

    This is no verdict: a longer run might not have stayed within the limit.
    """
    board = board_of(history, viewer, name)
    if board.limit_ns is None:
        return None
    worst = func.max(INTERVAL.c.max_ns)
    with board_view(history, viewer, name) as (connection, number):
        return connection.execute(
            select(RUN.c.name)
            .join(INTERVAL, INTERVAL.c.run == RUN.c.id)
            .where(
                INTERVAL.c.board == number,
                INTERVAL.c.series == series_number(connection, board.main),
                INTERVAL.c.begin_s >= before_s - _GOOD_WITHIN_S,
                INTERVAL.c.begin_s < before_s,
                RUN.c.end_s <= before_s,
            )
            .group_by(RUN.c.id, RUN.c.name, RUN.c.begin_s)
            .having(worst <= board.limit_ns)
            .order_by(RUN.c.begin_s.desc())
            .limit(1)
        ).scalar()
