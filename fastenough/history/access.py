# SPDX-License-Identifier: GPL-2.0-or-later
"""Access control: every query looks up its board here, so that none can skip the check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Select, select

from fastenough.history.database import History
from fastenough.history.results import UnknownBoard, Viewer
from fastenough.history.schema import BOARD, SERIES

NO_SERIES = 0
"""Number of a series without rows."""


def seen_by(question: Select[Any], viewer: Viewer) -> Select[Any]:
    """Only of boards that the viewer may see."""
    if viewer.sees_all:
        return question
    if viewer.sites is not None:
        return question.where(BOARD.c.site.in_(sorted(viewer.sites)), BOARD.c.site != "")
    return question.where(BOARD.c.public)


@contextmanager
def board_view(history: History, viewer: Viewer, name: str) -> Iterator[tuple[Connection, int]]:
    """A view of one moment and the number of a board in it; raises UnknownBoard."""
    with history.reading() as connection:
        number = connection.execute(seen_by(select(BOARD.c.id).where(BOARD.c.name == name), viewer)).scalar()
        if number is None:
            raise UnknownBoard(name)
        yield connection, int(number)


def series_number(connection: Connection, name: str) -> int:
    return connection.execute(select(SERIES.c.id).where(SERIES.c.name == name)).scalar() or NO_SERIES
