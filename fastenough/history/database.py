# SPDX-License-Identifier: GPL-2.0-or-later
"""The database of the history: a file on one bench, or PostgreSQL shared by several racks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Dialect, Engine, Table, bindparam, create_engine, event, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from fastenough.files import Untrusted, changeable_by_others
from fastenough.model import BadInput, FastenoughError, Unavailable
from fastenough.store import Store
from fastenough.store.shared_index import secrets_of, without_secrets

_PATIENCE_MS = 30_000
"""Time for which a process waits for another one that writes into the same file."""
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    f"busy_timeout={_PATIENCE_MS}",
    "mmap_size=1073741824",
    "cache_size=-65536",
)
"""Settings of SQLite.  With synchronous=NORMAL a power failure undoes the last transactions, for which takers have
already answered boards: these have deleted the data."""
_WRITES = "history_writes"
_FILE = "history.sqlite"
_ARCHIVE = "history-archive"


class History:
    """A history; an older schema is migrated when it is opened.

    All of it can be derived again from the store, except the farms' declarations of boards.
    """

    def __init__(self, engine: Engine, archive: Path | None, wall_s: Callable[[], float] = time.time) -> None:
        self.engine = engine
        self.archive = archive
        self._temporary: TemporaryDirectory[str] | None = None
        self._is_migrated = False
        self.wall_s = wall_s

    @classmethod
    def at(cls, url: str | URL, archive: Path | None = None) -> History:
        """Open or create the database at ``sqlite:///FILE`` or ``postgresql+psycopg://…``.

        ``archive``: directory of closed months; without one no month is closed.  Raises BadInput for an invalid URL,
        and Unavailable if the database cannot be used.
        """
        history = cls.later(url, archive)
        history.migrate()
        return history

    @classmethod
    def later(cls, url: str | URL, archive: Path | None = None) -> History:
        """Open the database without connecting, so that it may be unavailable at first; it is migrated at the first
        query.

        Raises BadInput for an invalid URL, and for a file that other users could have placed there.
        """
        try:
            engine = create_engine(make_url(url))
        except (SQLAlchemyError, ImportError, TypeError, ValueError):
            raise BadInput(
                "invalid database URL (not shown: it may contain a password); use "
                "sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
            ) from None
        if engine.dialect.name == "sqlite":
            if engine.url.database:
                _require_trusted(Path(engine.url.database))
            _as_file(engine)
        return cls(engine, archive)

    @classmethod
    def of(cls, store: Store, url: str | None = None) -> History:
        """The history of a store: ``history.sqlite`` in it, or the database at a URL; closed months are in the store.

        Raises BadInput for a file in a store that other users can change: SQLite could be made to write elsewhere.
        """
        own = URL.create("sqlite", database=f"{store.path}/{_FILE}")
        if url is None or url == own.render_as_string():
            _require_own(store)
        return cls.at(url or own, archive=store.path / _ARCHIVE)

    @classmethod
    def temporary(cls) -> History:
        """A history in a temporary file, without an archive; the store can always make another one."""
        folder = TemporaryDirectory(prefix="fastenough-history-")
        history = cls.at(URL.create("sqlite", database=f"{folder.name}/{_FILE}"))
        event.listen(history.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
        history.engine.dispose()
        history._temporary = folder
        return history

    def migrate(self) -> None:
        with self._usable(), self.engine.connect() as connection:
            is_current = version_of(connection) == VERSION
        if not is_current:
            with self._written() as connection:
                migrate(connection)
        self._is_migrated = True

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            message = without_secrets(error, secrets_of(self.engine.url))
            raise Unavailable(
                f"the history database is not available: {message}; the runs are safe, and the history can be rebuilt "
                "from them"
            ) from None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A view of one moment."""
        if not self._is_migrated:
            self.migrate()
        with self._usable(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction.  Writers are serialised: none reads rows that another is about to change."""
        if not self._is_migrated:
            self.migrate()
        with self._written() as connection:
            yield connection

    @contextmanager
    def _written(self) -> Iterator[Connection]:
        with (
            self._usable(),
            self.engine.connect().execution_options(**{_WRITES: True}) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        self.engine.dispose()
        if self._temporary is not None:
            self._temporary.cleanup()


def _require_own(store: Store) -> None:
    if not store.is_private():
        raise BadInput(
            f"{store.path} is writable by other users, so it cannot hold the history; name a database "
            "elsewhere, such as sqlite:////var/lib/fastenough/history.sqlite"
        )
    try:
        store.require_own(_FILE)
    except Untrusted as error:
        raise BadInput(str(error)) from error


def _require_trusted(database: Path) -> None:
    """Raises BadInput for an SQLite file that another user can redirect.

    SQLite follows links and trusts the journals that it finds.  Users other than root also trust the owner of the file.
    """
    owner = None
    with suppress(OSError, ValueError):
        owner = database.stat().st_uid if os.geteuid() else None
    for ending in ("", "-wal", "-shm", "-journal"):
        place = None
        with suppress(OSError, ValueError):  # SQLite says why it cannot be opened
            place = changeable_by_others(Path(f"{database}{ending}"), owner)
        if place is not None:
            raise BadInput(
                f"{place} is writable by other users, so {database} is not used; name a database in a "
                "folder that only you can write (chmod go-w), or run this as its owner"
            )


def _as_file(engine: Engine) -> None:
    """Set up SQLite: readers beside one writer, whose transaction takes the lock before it reads."""

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def put(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], keys: Sequence[str] = ()) -> None:
    """Insert rows, or replace those of the same ``keys`` (without: the primary key); all have the same columns."""
    if not rows:
        return
    same = tuple(keys) or tuple(column.name for column in table.primary_key)
    statement, order = _putting(connection.dialect, table, same, tuple(rows[0]))
    connection.exec_driver_sql(statement, [tuple(map(row.__getitem__, order)) if order else dict(row) for row in rows])


@cache
def _putting(
    dialect: Dialect, table: Table, same: tuple[str, ...], names: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """The statement in the form of the driver, and the order of its values if it takes them as a tuple.

    All columns are numbers, text or bytes and need no conversion; SQLAlchemy would take longer to compile each row than
    to write it.
    """
    statement: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[dialect.name](table).values(
        {name: bindparam(name) for name in names}
    )
    compiled: Any = statement.on_conflict_do_update(
        index_elements=same, set_={name: statement.excluded[name] for name in names if name not in same}
    ).compile(dialect=dialect)
    return str(compiled), tuple(compiled.positiontup or ())


VERSION = "8"
"""Version of the tables in `schema.py`; `migrations/versions/` has all versions."""


def version_of(connection: Connection) -> str | None:
    """None of a database that has no history in it yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate(connection: Connection, to: str = VERSION) -> None:
    """Migrate within the open transaction: a failure changes nothing."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7701, 0)"))
    version = version_of(connection)
    if (version is not None and not version.isdecimal()) or int(version or 0) > int(VERSION):
        raise FastenoughError(
            f"the history has version {version}; this fastenough supports versions up to {VERSION}; update "
            "fastenough, or name another database"
        )
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)
