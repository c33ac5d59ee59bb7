# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a board's latency tail, and the last run within its limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, insert, or_, select

from fastenough import words
from fastenough.analysis.level_changes import level_changes
from fastenough.analysis.surveillance import LEAST_BEFORE
from fastenough.history.access import board_view
from fastenough.history.board_status import board_of, main_series
from fastenough.history.boards import lock_boards
from fastenough.history.database import History
from fastenough.history.results import Viewer
from fastenough.history.rollups import next_month_s
from fastenough.history.schema import ALL_CPUS, ARCHIVE, BOARD, CHANGE, CYCLE, CYCLE_S, INTERVAL, NOW, RUN, SERIES

TAIL = "tail"
TREND = "trend"
TAIL_KINDS = (TAIL, TREND)
KEY = "greatest value of a cycle"
APART_S = LEAST_BEFORE * CYCLE_S
"""Minimum distance between changes of one board."""
_MOST_UNEQUAL = 1.25
"""Cycles are compared whose numbers of values differ by no more than this factor."""
CYCLES_A_YEAR = 365.25 * 86400 / CYCLE_S
_GOOD_WITHIN_S = 60 * 86400


@dataclass(frozen=True)
class TailPoint:
    """A change of the tail: the maxima of cycles were about ``was_ns``, and about ``now_ns`` from ``at_s`` on.

    ``until_s``: end of a trend, None for a step.  ``noted_s``: end of the cycle that showed the change.
    ``withdrawn_s``: end of the cycle that made it improbable, None for none.
    """

    at_s: int
    until_s: int | None
    was_ns: int
    now_ns: int
    noted_s: int
    withdrawn_s: int | None = None

    @property
    def rises(self) -> bool:
        return self.now_ns > self.was_ns


def mean_between(boards: int, false_changes: float) -> float:
    """Cycles per false change of a board, for this number of false changes in the whole farm per year.

    The number of boards is rounded up to a power of two, so that one more board rarely moves announced changes.
    """
    return float(2 ** max(0, boards - 1).bit_length() * CYCLES_A_YEAR / false_changes)


def tail_points(
    begins_s: Sequence[int], max_ns: Sequence[int], counts: Sequence[int], between: float
) -> list[TailPoint]:
    """Changes of the greatest values of cycles, in the order of noting.

    ``counts``: values in each cycle; ``between``: see `mean_between`.  Later cycles move or withdraw changes, and never
    change when they were noted.
    """
    begins, values = np.array(begins_s, dtype=np.int64), np.array(max_ns, dtype=np.float64)
    candidates = [
        point for places in equally_measured(counts) for point in _points_of(begins[places], values[places], between)
    ]
    points: list[TailPoint] = []
    for point in sorted(candidates, key=lambda point: point.noted_s):
        if not any(point.rises is other.rises and abs(point.at_s - other.at_s) < APART_S for other in points):
            points.append(point)
    return points


def _points_of(begins: NDArray[np.int64], values: NDArray[np.float64], between: float) -> Iterator[TailPoint]:
    for change in level_changes(values, between):
        yield TailPoint(
            int(begins[change.first]),
            int(begins[change.last]) + CYCLE_S if change.gradual else None,
            round(change.before),
            round(change.after),
            int(begins[change.noted]) + CYCLE_S,
            None if change.withdrawn is None else int(begins[change.withdrawn]) + CYCLE_S,
        )


def equally_measured(counts: Sequence[int]) -> list[NDArray[np.int64]]:
    """Places of cycles that hold about as many values, for each such number: of more values the greatest is greater."""
    places_of: dict[int, list[int]] = {}
    for place, count in enumerate(counts):
        like = (usual for usual in places_of if usual / _MOST_UNEQUAL <= count <= usual * _MOST_UNEQUAL)
        places_of.setdefault(min(like, key=lambda usual: abs(usual - count), default=count), []).append(place)
    return [np.array(places, dtype=np.int64) for places in places_of.values()]


class TailWatch:
    """Looks for changes in the cycles of a farm's boards once another cycle has closed, and stores them.

    ``boards``: names of all boards of the farm; ``false_changes``: accepted number per year for all together.
    """

    def __init__(self, boards: Collection[str], false_changes: float) -> None:
        self.false_changes = false_changes
        self.boards = frozenset(boards)
        self._between = mean_between(len(self.boards), false_changes)
        self._looked_at: dict[int, tuple[int, int]] = {}

    def look(self, history: History) -> dict[str, list[TailPoint]]:
        """New changes by board; all are stored before it returns."""
        with history.reading() as connection:
            names = {row.id: row.name for row in connection.execute(select(BOARD.c.id, BOARD.c.name))}
            main = main_series(connection)
            newest = {
                (row.board, row.series): int(row.newest_s)
                for row in connection.execute(select(NOW.c.board, NOW.c.series, NOW.c.newest_s))
            }
        new: dict[str, list[TailPoint]] = {}
        for board, series in main.items():
            closed_s = newest[board, series] // CYCLE_S * CYCLE_S
            if names[board] in self.boards and self._looked_at.get(board) != (series, closed_s):
                with history.writing() as connection:
                    lock_boards(connection, (names[board],))
                    points = self._points(connection, board, series, closed_s)
                    new |= {names[board]: fresh} if (fresh := _store(connection, board, points)) else {}
                self._looked_at[board] = series, closed_s
        return new

    def _points(self, connection: Connection, board: int, series: int, closed_s: int) -> list[TailPoint]:
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
        begins, maxima, counts = ([row[column] for row in rows] for column in range(3))
        return tail_points(begins, maxima, counts, self._between)


def _store(connection: Connection, board: int, points: Sequence[TailPoint]) -> list[TailPoint]:
    """Store the changes of a board in place of its earlier ones; returns the new ones."""
    mine = (CHANGE.c.board == board, CHANGE.c.kind.in_(TAIL_KINDS))
    known_s = list(connection.execute(select(CHANGE.c.noted_s).where(*mine)).scalars())
    connection.execute(delete(CHANGE).where(*mine))
    if points:
        connection.execute(insert(CHANGE), [_row(connection, board, point) for point in points])
    return [point for point in points if all(abs(point.noted_s - noted_s) >= APART_S for noted_s in known_s)]


class _ChangeRow(TypedDict):
    """A row of the table of changes."""

    board: int
    at_s: int
    kind: str
    key: str
    was: str
    now: str
    latency: bool
    last_run: int | None
    run: int | None
    noted_s: int
    until_s: int | None
    withdrawn_s: int | None


def _row(connection: Connection, board: int, point: TailPoint) -> _ChangeRow:
    return {
        "board": board,
        "at_s": point.at_s,
        "kind": TAIL if point.until_s is None else TREND,
        "key": KEY,
        "was": words.latency(point.was_ns),
        "now": words.latency(point.now_ns),
        "latency": True,
        "last_run": _run_beside(connection, board, point.at_s, before=True),
        "run": _run_beside(connection, board, point.at_s, before=False),
        "noted_s": point.noted_s,
        "until_s": point.until_s,
        "withdrawn_s": point.withdrawn_s,
    }


def _run_beside(connection: Connection, board: int, at_s: int, *, before: bool) -> int | None:
    """The last run that began before an instant, or the first that did not."""
    where = RUN.c.begin_s < at_s if before else RUN.c.begin_s >= at_s
    order = RUN.c.begin_s.desc() if before else RUN.c.begin_s
    return connection.execute(select(RUN.c.id).where(RUN.c.board == board, where).order_by(order).limit(1)).scalar()


def last_good(history: History, viewer: Viewer, name: str, before_s: int) -> str | None:
    """The last run before an instant with no value above the board's limit; None if none began within 60 days, or no
    limit.

    A run of which a month is closed is not named, because its five-minute rows are gone.  Raises UnknownBoard.  This is
    no verdict: a longer run might have exceeded the limit.
    """
    board = board_of(history, viewer, name)
    if board.limit_ns is None:
        return None
    worst = func.max(INTERVAL.c.max_ns)
    with board_view(history, viewer, name) as (connection, number):
        closed_s = connection.execute(select(func.max(ARCHIVE.c.begin_s)).where(ARCHIVE.c.board == number)).scalar()
        limited = (
            select(NOW.c.series)
            .join(SERIES, NOW.c.series == SERIES.c.id)
            .where(NOW.c.board == number, or_(SERIES.c.for_verdict, SERIES.c.name == board.main))
        )
        first_s = max(before_s - _GOOD_WITHIN_S, 0 if closed_s is None else next_month_s(closed_s))
        return connection.execute(
            select(RUN.c.name)
            .join(INTERVAL, INTERVAL.c.run == RUN.c.id)
            .where(
                INTERVAL.c.board == number,
                INTERVAL.c.series.in_(limited),
                INTERVAL.c.begin_s >= first_s,
                INTERVAL.c.begin_s < before_s,
                RUN.c.begin_s >= first_s,
                RUN.c.end_s <= before_s,
            )
            .group_by(RUN.c.id, RUN.c.name, RUN.c.begin_s)
            .having(worst <= board.limit_ns)
            .order_by(RUN.c.begin_s.desc())
            .limit(1)
        ).scalar()
