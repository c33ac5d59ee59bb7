# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened on a board: its runs, values that stand out, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from fastenough.history.asking import about, seen_by
from fastenough.history.database import History
from fastenough.history.rollups import DAY_S
from fastenough.history.rows import NOTHING, Band, Change, Happening, Viewer
from fastenough.history.schema import BOARD, CHANGE, EVENT, HOUR, HOUR_S, RUN, SERIES

MOST_EVENTS = 200
_NEW_FOR_S = 30 * DAY_S


def bands(history: History, viewer: Viewer, name: str, begin_s: int, end_s: int) -> list[Band]:
    """The runs that lie in a range, oldest first, each as long as it really was; raises UnknownBoard."""
    with about(history, viewer, name) as (connection, board):
        rows = connection.execute(_runs_of(board, begin_s, end_s)).mappings().all()
    return [Band(row["begin_s"], row["end_s"], row["load"], row["configuration"], row["name"]) for row in rows]


def runs(history: History, viewer: Viewer, name: str, begin_s: int, end_s: int) -> list[str]:
    """Ids in the store of the runs that lie in a range, oldest first; raises UnknownBoard."""
    return [band.run for band in bands(history, viewer, name, begin_s, end_s)]


def _runs_of(board: int, begin_s: int, end_s: int) -> Select[Any]:
    return (
        select(RUN)
        .where(RUN.c.board == board, RUN.c.begin_s < end_s, RUN.c.end_s >= begin_s)
        .order_by(RUN.c.begin_s, RUN.c.name)
    )


def events(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, begin_s: int, end_s: int, most: int = MOST_EVENTS
) -> list[Happening]:
    """The greatest values that stand out in a range, the greatest first; raises UnknownBoard."""
    return _events(history, viewer, name, (begin_s, end_s), (EVENT.c.value_ns.desc(), EVENT.c.at_s), most)


def newest_events(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, begin_s: int, end_s: int, most: int = MOST_EVENTS
) -> list[Happening]:
    """The newest values that stand out in a range, the newest first; raises UnknownBoard."""
    return _events(history, viewer, name, (begin_s, end_s), (EVENT.c.at_s.desc(), EVENT.c.value_ns.desc()), most)


def _events(  # noqa: PLR0917 - as above
    history: History, viewer: Viewer, name: str, span: tuple[int, int], order: Sequence[ColumnElement[Any]], most: int
) -> list[Happening]:
    with about(history, viewer, name) as (connection, board):
        rows = (
            connection.execute(
                select(EVENT, RUN.c.name.label("run_name"), SERIES.c.name.label("series_name"))
                .join(RUN, EVENT.c.run == RUN.c.id)
                .join(SERIES, EVENT.c.series == SERIES.c.id)
                .where(EVENT.c.board == board, EVENT.c.at_s >= span[0], EVENT.c.at_s < span[1])
                .order_by(*order)
                .limit(most)
            )
            .mappings()
            .all()
        )
        return [
            Happening(
                row["at_s"],
                row["kind"],
                row["series_name"],
                None if row["cpu"] < 0 else row["cpu"],
                row["value_ns"],
                row["culprit"],
                row["run_name"],
                _is_new(connection, row),
            )
            for row in rows
        ]


def _is_new(connection: Connection, row: Any) -> bool:
    """Whether the 30 days before its five minutes had been measured, and nothing as great was among them."""
    hour_s = row["slot_s"] // HOUR_S * HOUR_S
    before = connection.execute(
        select(func.max(HOUR.c.max_ns)).where(
            HOUR.c.board == row["board"],
            HOUR.c.series == row["series"],
            HOUR.c.begin_s < hour_s,
            HOUR.c.begin_s >= hour_s - _NEW_FOR_S,
        )
    ).scalar()
    return before is not None and before > NOTHING and row["value_ns"] > before


def changes(history: History, viewer: Viewer, name: str, begin_s: int, end_s: int) -> list[Change]:
    """What changed in a range, newest first, of one moment that first which shapes latencies; raises UnknownBoard."""
    before, after = RUN.alias("before"), RUN.alias("after")
    with about(history, viewer, name) as (connection, board):
        rows = (
            connection.execute(
                select(CHANGE, before.c.name.label("before"), after.c.name.label("after"))
                .outerjoin(before, CHANGE.c.last_run == before.c.id)
                .outerjoin(after, CHANGE.c.run == after.c.id)
                .where(CHANGE.c.board == board, CHANGE.c.at_s >= begin_s, CHANGE.c.at_s < end_s)
                .order_by(CHANGE.c.at_s.desc(), CHANGE.c.latency.desc(), CHANGE.c.id)
            )
            .mappings()
            .all()
        )
    return [
        Change(
            row["at_s"],
            row["kind"],
            row["key"],
            row["was"],
            row["now"],
            row["latency"],
            row["before"] or "",
            row["after"] or "",
        )
        for row in rows
    ]


def last_changes(history: History, viewer: Viewer, kind: str, begin_s: int, end_s: int) -> dict[str, int]:
    """By name of the boards that changed so in a range, when each last did."""
    with history.reading() as connection:
        rows = connection.execute(
            seen_by(
                select(BOARD.c.name, func.max(CHANGE.c.at_s))
                .join(CHANGE, CHANGE.c.board == BOARD.c.id)
                .where(CHANGE.c.kind == kind, CHANGE.c.at_s >= begin_s, CHANGE.c.at_s < end_s)
                .group_by(BOARD.c.name),
                viewer,
            )
        )
        return {name: at_s for name, at_s in rows}
