# SPDX-License-Identifier: GPL-2.0-or-later
"""The index: summaries of many runs in a database, for queries without opening the runs.

The index of a store is an SQLite file, used through Python's own driver: nearly every command opens it, and to import
SQLAlchemy takes as long as all the rest of a short command.  Only other databases are used through SQLAlchemy.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from fastenough.files import lock_holder
from fastenough.model import BadInput, FastenoughError
from fastenough.store.summary import INTEGERS, LISTS, RunSummary, with_tuples

INDEX_VERSION = 6
"""Part of the table's name: an index of another version is not migrated but rebuilt from the runs."""
IN_MEMORY = "sqlite://"
"""The URL of an index in memory."""
_PATIENCE_S = 10
"""Maximum wait for another process that writes to the same file."""
_NAMES = [field.name for field in fields(RunSummary)]
_COLUMNS = [*_NAMES, "place", "stamp"]
_SEARCHED = ("board", "campaign", "load", "place", "probe", "state")
_TABLE = f"runs_v{INDEX_VERSION}"

_TYPES = dict.fromkeys(INTEGERS, "BIGINT") | {"id": "TEXT PRIMARY KEY"}
"""Of the columns; all others are text.  Lists are stored as JSON."""


class DatabaseError(Exception):
    """The first line of a database's error, without secrets; ``is_locked``: another process holds an SQLite file."""

    def __init__(self, message: str, is_locked: bool) -> None:
        super().__init__(message)
        self.is_locked = is_locked


class Execute(Protocol):
    """Execute a statement in a transaction, once or for each of a sequence of values, and return its rows.

    Values are named in the statement with a colon (``:id``).
    """

    def __call__(
        self, statement: str, values: Mapping[str, object] | Sequence[Mapping[str, object]] = ...
    ) -> Sequence[Sequence[Any]]: ...


class IndexDatabase(Protocol):
    """``file``: that of an SQLite database; None in memory and of a server."""

    file: Path | None

    def has_table(self, name: str) -> bool:
        """Whether this table exists; raises DatabaseError."""

    def transaction(self) -> AbstractContextManager[Execute]:
        """Context of one transaction; raises DatabaseError."""

    def close(self) -> None: ...


class _SqliteDatabase:
    """An SQLite file, which is opened for each transaction, or a database in memory (None), of which all threads share
    the one connection."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._turn = threading.RLock() if file is None else nullcontext()
        self.memory = sqlite3.connect(":memory:", check_same_thread=False) if file is None else None

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        try:
            with self._turn, self._connected() as connection, connection:
                yield partial(_execute, connection)
        except sqlite3.Error as error:
            raise DatabaseError(str(error), is_locked_by_another(error)) from error

    def has_table(self, name: str) -> bool:
        with self.transaction() as execute:
            found = execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": name})
        return bool(found)

    def _connected(self) -> AbstractContextManager[sqlite3.Connection]:
        if self.memory is not None:
            return nullcontext(self.memory)
        return closing(sqlite3.connect(str(self.file), _PATIENCE_S))

    def close(self) -> None:
        if self.memory is not None:
            self.memory.close()


def is_locked_by_another(error: BaseException | None) -> bool:
    """Whether another process holds an SQLite file."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY


def _execute(
    connection: sqlite3.Connection,
    statement: str,
    values: Mapping[str, object] | Sequence[Mapping[str, object]] = (),
) -> list[tuple[Any, ...]]:
    if isinstance(values, Mapping) or not values:
        return connection.execute(statement, values).fetchall()
    connection.executemany(statement, values)
    return []


def _opened(database: str | Path) -> IndexDatabase:
    if isinstance(database, Path):
        return _SqliteDatabase(database)
    if database == IN_MEMORY:
        return _SqliteDatabase(None)
    server: IndexDatabase = import_module("fastenough.store.shared_index").ServerDatabase(database, _PATIENCE_S)
    return server


class Index:
    """Summaries by run.

    ``database``: its URL, or the file of an SQLite database.  ``place`` identifies the store in a shared database.
    None: the database has one store only; its runs remain valid if the store is moved or its host is renamed.
    """

    def __init__(self, database: str | Path, place: str | None) -> None:
        self._place = place
        self._database = _opened(database)
        self.in_memory = database == IN_MEMORY
        with self._mendable():
            if self._database.has_table(_TABLE):
                return
            try:
                self._create()
            except DatabaseError as error:  # another process may have made the table since this one looked
                if error.is_locked or not self._database.has_table(_TABLE):
                    raise

    def _create(self) -> None:
        """Make the table.  PostgreSQL refuses that, even "if not exists", to a user who may not create it."""
        columns = ", ".join(f'"{name}" {_TYPES.get(name, "TEXT")}' for name in _COLUMNS)
        with self._database.transaction() as execute:
            execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} ({columns})")
            for name in _SEARCHED:
                execute(f'CREATE INDEX IF NOT EXISTS ix_{_TABLE}_{name} ON {_TABLE} ("{name}")')

    @contextmanager
    def _mendable(self) -> Iterator[None]:
        """Context of a query, whose errors say what to do."""
        try:
            yield
        except (DatabaseError, ValueError, TypeError) as error:
            if isinstance(error, DatabaseError) and error.is_locked:
                raise FastenoughError(
                    f"{self._holder()} has locked the index for more than {_PATIENCE_S} s; the runs "
                    "are safe: wait until it ends, or stop it"
                ) from None
            raise FastenoughError(
                f"the index cannot be used: {error}; the runs are safe: fix the "
                "cause, then run 'fastenough store rebuild'"
            ) from None

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        with self._mendable(), self._database.transaction() as execute:
            yield execute

    def _holder(self) -> str:
        file = self._database.file
        return (lock_holder(file) if file is not None else "") or "another process"

    def put(self, summaries: Iterable[tuple[RunSummary, str]]) -> None:
        """Insert or replace; beside each summary the stamp of its files, which tells when to read them again."""
        rows = self._rows(summaries)
        with self._transaction() as execute:
            _put(execute, rows)

    def replace(self, summaries: Iterable[tuple[RunSummary, str]]) -> None:
        """Replace all runs of this place in one transaction."""
        rows = self._rows(summaries)
        of_this_store, place = self._of_this_store()
        with self._transaction() as execute:
            execute(f"DELETE FROM {_TABLE} WHERE {of_this_store}", place)
            _put(execute, rows)

    def _of_this_store(self) -> tuple[str, dict[str, object]]:
        """The condition for a run of this store, and its value."""
        return ("1 = 1", {}) if self._place is None else ("place = :place", {"place": self._place})

    def _rows(self, summaries: Iterable[tuple[RunSummary, str]]) -> list[dict[str, object]]:
        return [
            {name: _stored(value) for name, value in asdict(summary).items()}
            | {"place": self._place or "", "stamp": stamp}
            for summary, stamp in summaries
        ]

    def remove(self, ids: Iterable[str]) -> None:
        with self._transaction() as execute:
            _remove(execute, list(ids))

    def copy_over(self, file: str) -> None:
        """Copy this in-memory index over an SQLite file; raises sqlite3.Error if it cannot be locked.

        One transaction in that file: processes that use it wait or see the whole, and a death in it leaves the old.
        To rename a new file over one in use would let SQLite apply the journal of the old one to the new one.
        """
        assert isinstance(self._database, _SqliteDatabase) and self._database.memory is not None
        with closing(sqlite3.connect(file, _PATIENCE_S)) as target:
            self._database.memory.backup(target, progress=_let_signals_in)

    def known(self) -> dict[str, tuple[str, str]]:
        """State and stamp by id of this place's runs."""
        of_this_store, place = self._of_this_store()
        with self._transaction() as execute:
            rows = execute(f"SELECT id, state, stamp FROM {_TABLE} WHERE {of_this_store}", place)
        return {run_id: (state, stamp) for run_id, state, stamp in rows}

    def find(
        self, equal: Mapping[str, object], last: int | None = None, *, brief: bool = False, own: bool = False
    ) -> list[RunSummary]:
        """Runs whose fields equal the given ones, oldest first, or only the ``last`` ones; a set matches its members.

        ``brief``: without the plan of the campaign.  ``own``: of this place only.  Raises BadInput for an unknown
        field.
        """
        unknown = set(equal) - set(_NAMES)
        if unknown:
            raise BadInput(f"runs have no field {', '.join(sorted(unknown))}; use {', '.join(_NAMES)}")
        columns = ", ".join("NULL" if brief and name == "planned" else f'"{name}"' for name in _NAMES)
        conditions, values = _conditions(equal)
        if own:
            of_this_store, place = self._of_this_store()
            conditions, values = [*conditions, of_this_store], values | place
        statement = f"SELECT {columns} FROM {_TABLE} WHERE {' AND '.join(conditions)} ORDER BY id DESC"
        if last is not None:
            statement, values = f"{statement} LIMIT :last", values | {"last": last}
        with self._transaction() as execute:
            return [_summary(row) for row in reversed(execute(statement, values))]

    def newest_campaign(self) -> str | None:
        """The campaign of the newest run that belongs to one, None if there is none."""
        with self._transaction() as execute:
            rows = execute(f"SELECT campaign FROM {_TABLE} WHERE campaign != '' ORDER BY id DESC LIMIT 1")
        return next((str(campaign) for (campaign,) in rows), None)

    def starting_with(self, prefix: str) -> list[tuple[str, str]]:
        """Id and place of every run whose id has this prefix; the place is only known in a shared database."""
        pattern = "".join(f"/{letter}" if letter in "%_/" else letter for letter in prefix) + "%"
        statement = f"SELECT id, place FROM {_TABLE} WHERE id LIKE :pattern ESCAPE '/' ORDER BY id"
        with self._transaction() as execute:
            return [(run_id, place) for run_id, place in execute(statement, {"pattern": pattern})]

    def close(self) -> None:
        self._database.close()


def _conditions(equal: Mapping[str, object]) -> tuple[list[str], dict[str, object]]:
    """The conditions for fields that equal these values, and the values by their names in the conditions."""
    conditions, values = ["1 = 1"], dict[str, object]()
    for name, value in equal.items():
        members = sorted(value) if isinstance(value, Set) else [value]
        named = {f"{name}_{number}": _stored(member) for number, member in enumerate(members)}
        if value is None:
            conditions.append(f'"{name}" IS NULL')
        elif not named:
            conditions.append("1 = 0")
        else:
            conditions.append(f'"{name}" IN ({", ".join(f":{one}" for one in named)})')
            values |= named
    return conditions, values


def _let_signals_in(status: int, left: int, total: int) -> None:
    """Python code between two attempts, so that Ctrl-C ends the wait for another process."""


def _put(execute: Execute, rows: Sequence[Mapping[str, object]]) -> None:
    if not rows:
        return
    _remove(execute, [row["id"] for row in rows])
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    values = ", ".join(f":{name}" for name in _COLUMNS)
    execute(f"INSERT INTO {_TABLE} ({names}) VALUES ({values})", rows)


def _remove(execute: Execute, ids: Sequence[object]) -> None:
    if ids:
        execute(f"DELETE FROM {_TABLE} WHERE id = :id", [{"id": run_id} for run_id in ids])


def _stored(value: object) -> object:
    """A value as it is stored: lists as JSON."""
    return json.dumps(value) if isinstance(value, list | tuple) else value


def _summary(row: Sequence[Any]) -> RunSummary:
    values = dict(zip(_NAMES, row, strict=True))
    lists = {name: json.loads(values[name]) for name in LISTS if values[name] is not None}
    return with_tuples(RunSummary(**values | lists))
