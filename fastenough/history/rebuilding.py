# SPDX-License-Identifier: GPL-2.0-or-later
"""Making a history again from the store, which is the truth."""

from __future__ import annotations

from sqlalchemy import delete, update

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

_FROM_RECORDINGS = (INTERVAL, HOUR, CYCLE, MONTH, NOW, EVENT, CHANGE, ARCHIVE, CURSOR, RUN, PROFILE, SERIES)


def rebuild(history: History, store: Store) -> Caught:
    """Forget all that came out of recordings and read it again.  What the farm says of boards stays.

    Killed meanwhile, the next `catch_up` goes on.
    """
    with history.writing() as connection:
        for table in _FROM_RECORDINGS:
            connection.execute(delete(table))
        connection.execute(delete(BOARD).where(BOARD.c.watched.is_(False)))
        connection.execute(update(BOARD).values(configuration="", shown="{}", changed_s=None))
    return catch_up(history, store)
