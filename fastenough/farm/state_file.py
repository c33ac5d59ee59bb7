# SPDX-License-Identifier: GPL-2.0-or-later
"""The state file of a farm: the state of each board, which is stored nowhere else.

The coordinator loses reservations when it restarts, and the history can be dropped.  The file is SQLite because another
process reads it (``fastenough farm status``) while the farm writes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fastenough.farm.state_machine import BoardAct, BoardPhase, BoardState
from fastenough.files import private_directory
from fastenough.model import BadInput, FastenoughError

FILE = "farm.sqlite"
_TABLES = """
pragma journal_mode = wal;
pragma synchronous = full;
create table if not exists board (name text primary key, state text not null);
create table if not exists beat (id integer primary key check (id = 1), pid integer not null, at_s real not null,
                                 status_line text not null);
"""
_FIELDS = {field.name for field in fields(BoardState)}
_FORMER_FIELDS = {"lent_created_s": "place_created_s", "lent_changed_s": "place_changed_s"}
"""Names of fields in files of older versions."""
_FORMER_COLUMNS = {"one": "id", "said": "status_line"}
"""Names of columns of ``beat`` in files of older versions."""
_INVALID = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Error codes of an invalid file; SQLITE_ERROR: a table or column is missing."""
_PRIMARY_CODE = 0xFF
"""Mask: the other bits of an error code are details."""


@dataclass(frozen=True)
class Beat:
    """The farm's last heartbeat: process ID, time and status line (``status_line``)."""

    pid: int
    at_s: float
    status_line: str


class FarmState:
    """The open state file of a farm; raises BadInput while another farm writes it."""

    def __init__(self, state: Path) -> None:
        state.parent.mkdir(parents=True, exist_ok=True)
        private_directory(state)
        self._path = state / FILE
        self._turn = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._turn)
            raise BadInput(f"{state}: another farm uses this folder; stop it, or set another state folder") from None
        try:
            self._database = _writing(self._path)
        except BaseException:
            os.close(self._turn)
            raise

    def _execute(self, statement: str, values: tuple[object, ...]) -> None:
        with _file_errors(self._path):
            self._database.execute(statement, values)

    def put(self, name: str, state: BoardState) -> None:
        document = asdict(state) | {"busy": sorted(state.busy)}
        self._execute("insert or replace into board values (?, ?)", (name, json.dumps(document)))

    def rename(self, name: str, new: str) -> None:
        self._execute("update or replace board set name = ? where name = ?", (new, name))

    def beat(self, beat: Beat) -> None:
        self._execute("insert or replace into beat values (1, ?, ?, ?)", (beat.pid, beat.at_s, beat.status_line))

    def boards(self) -> dict[str, BoardState]:
        return _boards(self._path)

    def close(self) -> None:
        self._database.close()
        os.close(self._turn)


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Convert errors of an invalid file into BadInput, other errors of SQLite, as on a full disk, into FastenoughError.

    The advice to move the file away is given only for the former: otherwise the state of the boards would be lost.
    """
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, AttributeError) as error:
        # a value that cannot be converted raises errors without a code
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE not in _INVALID:
            raise FastenoughError(f"{path}: {error}; fix the cause, then start the farm again") from error
        raise BadInput(
            f"{path}: not a valid state file ({error}); move it away, then start the farm, which writes a new one"
        ) from error


def _writing(path: Path) -> sqlite3.Connection:
    """Open the file for writing, with its tables; columns with former names are renamed."""
    with _file_errors(path):
        database = sqlite3.connect(path, timeout=10.0, isolation_level=None)
        try:
            database.executescript(_TABLES)
            for column in database.execute("select name from pragma_table_info('beat')").fetchall():
                former = column[0]
                if former in _FORMER_COLUMNS:
                    database.execute(f"alter table beat rename column {former} to {_FORMER_COLUMNS[former]}")
        except BaseException:
            database.close()
            raise
        return database


def _boards(path: Path) -> dict[str, BoardState]:
    with _file_errors(path), closing(_reading(path)) as database:
        return {name: _state(json.loads(state)) for name, state in database.execute("select name, state from board")}


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)


def _state(stored: Mapping[str, object]) -> BoardState:
    """Build a state from stored fields; reads fields by their former names, and ignores those of newer versions."""
    named = {_FORMER_FIELDS.get(name, name): value for name, value in stored.items()}
    known = {name: value for name, value in named.items() if name in _FIELDS}
    state = BoardState(**known)  # type: ignore[arg-type]
    return BoardState(
        **known
        | {
            "phase": BoardPhase(state.phase),  # type: ignore[arg-type]
            "busy": frozenset(map(BoardAct, state.busy)),
        }
    )


def board_states(state: Path) -> dict[str, BoardState]:
    """Return the stored board states of a folder, empty if no farm has run there."""
    return _boards(state / FILE) if (state / FILE).exists() else {}


def read_state(state: Path) -> tuple[Beat | None, dict[str, BoardState]]:
    """Return the last heartbeat and the board states of a folder; raises BadInput if no farm has run there."""
    path = state / FILE
    if not path.exists():
        raise BadInput(f"{state}: no farm has run here; start one with: fastenough farm run FILE")
    with _file_errors(path), closing(_reading(path)) as database:
        row = database.execute("select * from beat").fetchone()  # files of older versions name columns differently
        return Beat(*row[1:]) if row else None, _boards(path)
