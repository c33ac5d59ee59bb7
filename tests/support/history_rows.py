# SPDX-License-Identifier: GPL-2.0-or-later
"""All rows of a history, with names for the numbers that each database gives as it likes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from fastenough.history import History
from fastenough.history.schema import BOARD, METADATA, RUN, SERIES

_NUMBERED = {"board": BOARD, "series": SERIES, "run": RUN, "last_run": RUN}
Rows = dict[str, list[tuple[Any, ...]]]


def all_rows(history: History) -> Rows:
    """By table, without cursors, archived files and summaries, which say what was read or computed when, and nothing
    that was measured."""
    with history.reading() as connection:
        names = {
            table.name: {row.id: row.name for row in connection.execute(select(table))} for table in _NUMBERED.values()
        }
        return {
            name: sorted(_rows(connection, name, names), key=repr)
            for name in METADATA.tables
            if name not in ("cursor", "archive", "summary")
        }


def _rows(connection: Connection, name: str, names: dict[str, dict[int, str]]) -> list[tuple[Any, ...]]:
    found = connection.execute(select(METADATA.tables[name])).mappings()
    return [
        tuple(
            names[_NUMBERED[column].name].get(value, value) if column in _NUMBERED else value
            for column, value in row.items()
            if column != "id"
        )
        for row in found
    ]
