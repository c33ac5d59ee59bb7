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
    RUN,
    SERIES,
)
from fastenough.store import Store

_OF_BOARDS = (INTERVAL, HOUR, CYCLE, MONTH, NOW, EVENT, CHANGE, ARCHIVE)
_OF_ALL = (PROFILE, SERIES)


def rebuild(history: History, store: Store, own: Collection[str] = ()) -> Caught:
    """Forget all that came out of recordings and read it again.  What the farm says of boards stays.

    ``own``: the boards of the farm that asks.  Another farm's, of which this store holds nothing, stay as they are:
    nothing could be read again of them here.  Killed meanwhile, the next `catch_up` goes on.
    """
    mine = {*own, *(run.board for run in store.runs(brief=True))}
    with history.writing() as connection:
        theirs = select(BOARD.c.id).where(BOARD.c.watched.is_(True), BOARD.c.name.not_in(mine))
        others = list(connection.scalars(theirs))
        runs = select(RUN.c.id).where(RUN.c.board.not_in(others))
        for table in _OF_BOARDS:
            connection.execute(delete(table).where(table.c.board.not_in(others)))
        connection.execute(delete(CURSOR).where(CURSOR.c.run.in_(runs)))
        connection.execute(delete(RUN).where(RUN.c.board.not_in(others)))
        for table in () if others else _OF_ALL:
            connection.execute(delete(table))
        connection.execute(delete(BOARD).where(BOARD.c.watched.is_(False)))
        connection.execute(update(BOARD).where(BOARD.c.id.not_in(others)).values(configuration="", shown="{}",
                                                                                   changed_s=None))
    return catch_up(history, store)
