# SPDX-License-Identifier: GPL-2.0-or-later
"""Making a history again from the store, which is the truth."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete, select, update

from fastenough.history.database import History
from fastenough.history.ingest import Caught, catch_up
from fastenough.history.schema import (
    ARCHIVE,
    BOARD,
    CHANGE,
    CURSOR,
    CYCLE,
    EVENT,
    HOUR,
    INTERVAL,
    MONTH,
    NOW,
    PROFILE,
    REFUSED,
    RUN,
    SERIES,
)
from fastenough.store import Store

_OF_BOARDS = (INTERVAL, HOUR, CYCLE, MONTH, NOW, EVENT, CHANGE, ARCHIVE, REFUSED)
_OF_ALL = (PROFILE, SERIES)


def rebuild(history: History, store: Store, own: Collection[str] = (), farm: str = "") -> Caught:
    """Forget all that came out of recordings and read it again.

    ``farm``: the one that asks, empty where none does; ``own``: its boards, of which what it says stays.  A board that
    it no longer names is forgotten, and read again where the store holds runs of it, as one that nobody declared.
    Another farm's, of which this store holds nothing, stay as they are: nothing could be read again of them here.
    Killed meanwhile, the next `catch_up` goes on.
    """
    mine = {*own, *(run.board for run in store.runs(brief=True))}
    with history.writing() as connection:
        shared = connection.dialect.name != "sqlite"
        theirs = select(BOARD.c.id).where(BOARD.c.watched.is_(True), BOARD.c.name.not_in(mine))
        if farm:
            theirs = theirs.where(BOARD.c.farm != farm) if shared else theirs.where(BOARD.c.farm.not_in(("", farm)))
        others = list(connection.scalars(theirs))
        runs = select(RUN.c.id).where(RUN.c.board.not_in(others))
        for table in _OF_BOARDS:
            connection.execute(delete(table).where(table.c.board.not_in(others)))
        connection.execute(delete(CURSOR).where(CURSOR.c.run.in_(runs)))
        connection.execute(delete(RUN).where(RUN.c.board.not_in(others)))
        for table in () if others else _OF_ALL:
            connection.execute(delete(table))
        connection.execute(delete(BOARD).where(BOARD.c.watched.is_(False)))
        if farm:
            connection.execute(delete(BOARD).where(BOARD.c.id.not_in(others), BOARD.c.name.not_in(own)))
        connection.execute(
            update(BOARD).where(BOARD.c.id.not_in(others)).values(configuration="", shown="{}", changed_s=None)
        )
    return catch_up(history, store)
