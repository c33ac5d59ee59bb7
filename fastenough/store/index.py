# SPDX-License-Identifier: GPL-2.0-or-later
"""The index: summaries of many runs in a database, for queries without opening the runs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import JSON, BigInteger, Column, MetaData, String, Table, create_engine, delete, insert, null, select
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool
from sqlalchemy.sql.elements import ColumnElement

from fastenough.files import lock_holder
from fastenough.model import BadInput, FastenoughError
from fastenough.store.summary import INTEGERS, LISTS, RunSummary, with_tuples

INDEX_VERSION = 5
"""Part of the table's name: an index of another version is not migrated but rebuilt from the runs."""
_PER_STATEMENT = 500
_PATIENCE_S = 10
"""Maximum wait for another process that writes to the same file."""
_LEAST_SECRET = 3
"""Shorter ones are not searched for in messages: every letter would be one."""


def _column(name: str) -> Column[Any]:
    if name in INTEGERS:
        return Column(name, BigInteger)
    if name in LISTS:
        return Column(name, JSON)
    return Column(name, String, primary_key=name == "id", index=name in {"board", "campaign", "load", "probe", "state"})


_NAMES = [field.name for field in fields(RunSummary)]

_RUNS = Table(
    f"runs_v{INDEX_VERSION}",
    MetaData(),
    *(_column(field.name) for field in fields(RunSummary)),
    Column("place", String, index=True),
    Column("stamp", String),
)


def _parsed(url: str) -> URL:
    """Raises BadInput without quoting the URL, which may contain a password."""
    try:
        return make_url(url)
    except (SQLAlchemyError, ValueError):
        raise BadInput(
            "the index is not a database URL (the value is not shown because it may contain a password); "
            "give a database URL such as sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
        ) from None


def secrets_of(url: URL) -> list[str]:
    """The parts of a URL that must not be printed: password, and query values, which some drivers use for one."""
    queried = [
        value if isinstance(value, str) else " ".join(value)
        for name, value in url.query.items()
        if name not in ("host", "port", "dbname")
    ]
    secrets = [url.password or "", quote(url.password or ""), *queried]
    return sorted((secret for secret in secrets if len(secret) >= _LEAST_SECRET), key=len, reverse=True)


def without_secrets(error: Exception, secrets: Iterable[str]) -> str:
    """The first line of a database error without secrets."""
    line = str(getattr(error, "orig", None) or error).partition("\n")[0]
    for secret in secrets:
        line = line.replace(secret, "***")
    return line


class Index:
    """Summaries by run.

    ``database``: its URL, or the file of an SQLite database.  ``place`` identifies the store in a shared database.
    None: the database has one store only; its runs remain valid if the store is moved or its host is renamed.
    """

    def __init__(self, database: str | Path, place: str | None) -> None:
        parsed = URL.create("sqlite", database=str(database)) if isinstance(database, Path) else _parsed(database)
        self._secrets = secrets_of(parsed)
        self._place = place
        sqlite = parsed.get_backend_name() == "sqlite"
        self.in_memory = memory = sqlite and parsed.database is None
        self._turn = threading.RLock() if memory else nullcontext()
        arguments = {"timeout": _PATIENCE_S, "check_same_thread": not memory} if sqlite else {}
        try:
            self._engine: Engine = create_engine(
                parsed, poolclass=StaticPool if memory else NullPool, connect_args=arguments
            )
        except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
            raise BadInput(
                f"cannot use the index in {parsed.drivername}: {self._message(error)}; give a database URL "
                "such as sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
            ) from None
        with self._mendable():
            try:
                _RUNS.metadata.create_all(self._engine)
            except SQLAlchemyError as error:  # another process may have made the table since this one looked
                if _is_locked(error):
                    raise
                _RUNS.metadata.create_all(self._engine)

    @contextmanager
    def _mendable(self) -> Iterator[None]:
        """Context of a query; all threads share the one connection of an index in memory, and take turns."""
        try:
            with self._turn:
                yield
        except (SQLAlchemyError, ValueError, TypeError) as error:
            if _is_locked(error):
                raise FastenoughError(
                    f"{self._holder()} has locked the index for more than {_PATIENCE_S} s; the runs "
                    "are safe: wait until it ends, or stop it"
                ) from None
            raise FastenoughError(
                f"the index cannot be used: {self._message(error)}; the runs are safe: fix the "
                "cause, then run 'fastenough store rebuild'"
            ) from None

    def _holder(self) -> str:
        database = self._engine.url.database
        return (lock_holder(Path(database)) if database else "") or "another process"

    def _message(self, error: Exception) -> str:
        return without_secrets(error, self._secrets)

    def put(self, summaries: Iterable[tuple[RunSummary, str]]) -> None:
        """Insert or replace; beside each summary the stamp of its files, which tells when to read them again."""
        rows = self._rows(summaries)
        with self._mendable(), self._engine.begin() as connection:
            _put(connection, rows)

    def replace(self, summaries: Iterable[tuple[RunSummary, str]]) -> None:
        """Replace all runs of this place in one transaction."""
        rows = self._rows(summaries)
        with self._mendable(), self._engine.begin() as connection:
            connection.execute(delete(_RUNS).where(*self._of_this_store()))
            _put(connection, rows)

    def _of_this_store(self) -> list[ColumnElement[bool]]:
        """The condition for a run of this store."""
        return [] if self._place is None else [_RUNS.c.place == self._place]

    def _rows(self, summaries: Iterable[tuple[RunSummary, str]]) -> list[dict[str, object]]:
        return [asdict(summary) | {"place": self._place or "", "stamp": stamp} for summary, stamp in summaries]

    def remove(self, ids: Iterable[str]) -> None:
        run_ids = list(ids)
        with self._mendable(), self._engine.begin() as connection:
            for begin in range(0, len(run_ids), _PER_STATEMENT):
                connection.execute(delete(_RUNS).where(_RUNS.c.id.in_(run_ids[begin : begin + _PER_STATEMENT])))

    def copy_over(self, file: str) -> None:
        """Copy this in-memory index over an SQLite file; raises sqlite3.Error if it cannot be locked.

        One transaction in that file: processes that use it wait or see the whole, and a death in it leaves the old.
        To rename a new file over one in use would let SQLite apply the journal of the old one to the new one.
        """
        with closing(self._engine.raw_connection()) as mine, closing(sqlite3.connect(file, _PATIENCE_S)) as target:
            source = mine.driver_connection
            assert isinstance(source, sqlite3.Connection)
            source.backup(target, progress=_let_signals_in)

    def known(self) -> dict[str, tuple[str, str]]:
        """State and stamp by id of this place's runs."""
        question = select(_RUNS.c.id, _RUNS.c.state, _RUNS.c.stamp).where(*self._of_this_store())
        with self._mendable(), self._engine.connect() as connection:
            return {run_id: (state, stamp) for run_id, state, stamp in connection.execute(question)}

    def find(self, equal: Mapping[str, object], last: int | None = None, *, brief: bool = False) -> list[RunSummary]:
        """Runs whose fields equal the given ones, oldest first, or only the ``last`` ones; a set matches its members.

        ``brief``: without the plan of the campaign.  Raises BadInput for an unknown field.
        """
        unknown = set(equal) - set(_NAMES)
        if unknown:
            raise BadInput(f"runs have no field {', '.join(sorted(unknown))}; use {', '.join(_NAMES)}")
        columns = [null() if brief and name == "planned" else _RUNS.c[name] for name in _NAMES]
        question = select(*columns).order_by(_RUNS.c.id.desc()).limit(last)
        for name, value in equal.items():
            same = _RUNS.c[name].in_(sorted(value)) if isinstance(value, Set) else _RUNS.c[name] == value
            question = question.where(same)
        with self._mendable(), self._engine.connect() as connection:
            rows = connection.execute(question).all()
        return [_summary(row) for row in reversed(rows)]

    def newest_campaign(self) -> str | None:
        """The campaign of the newest run that belongs to one, None if there is none."""
        question = select(_RUNS.c.campaign).where(_RUNS.c.campaign != "").order_by(_RUNS.c.id.desc()).limit(1)
        with self._mendable(), self._engine.connect() as connection:
            campaign: str | None = connection.execute(question).scalar()
        return campaign

    def starting_with(self, prefix: str) -> list[tuple[str, str]]:
        """Id and place of every run whose id has this prefix; the place is only known in a shared database."""
        question = select(_RUNS.c.id, _RUNS.c.place).where(_RUNS.c.id.startswith(prefix, autoescape=True))
        question = question.order_by(_RUNS.c.id)
        with self._mendable(), self._engine.connect() as connection:
            return [(str(row.id), str(row.place)) for row in connection.execute(question)]

    def close(self) -> None:
        self._engine.dispose()


def _is_locked(error: Exception) -> bool:
    """Whether another process holds an SQLite file."""
    return getattr(getattr(error, "orig", None), "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY


def _let_signals_in(status: int, left: int, total: int) -> None:
    """Python code between two attempts, so that Ctrl-C ends the wait for another process."""


def _put(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    for begin in range(0, len(rows), _PER_STATEMENT):
        part = rows[begin : begin + _PER_STATEMENT]
        connection.execute(delete(_RUNS).where(_RUNS.c.id.in_([row["id"] for row in part])))
        connection.execute(insert(_RUNS), part)


def _summary(row: Sequence[Any]) -> RunSummary:
    return with_tuples(RunSummary(*row))
