# SPDX-License-Identifier: GPL-2.0-or-later
"""The database of an index that is named by its URL, such as one shared by several benches, through SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from fastenough.model import BadInput
from fastenough.store.index import DatabaseError, Execute, is_locked_by_another

_LEAST_SECRET = 3
"""Shorter ones are not searched for in messages: every letter would be one."""


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


class ServerDatabase:
    """A database by its URL; ``patience_s``: maximum wait for another process that writes to an SQLite file."""

    def __init__(self, url: str, patience_s: float) -> None:
        parsed = _parsed(url)
        self._secrets = secrets_of(parsed)
        is_file = parsed.get_backend_name() == "sqlite" and bool(parsed.database)
        self.file = Path(str(parsed.database)) if is_file else None
        arguments = {"timeout": patience_s} if is_file else {}
        try:
            self._engine = create_engine(parsed, poolclass=NullPool, connect_args=arguments)
        except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
            raise BadInput(
                f"cannot use the index in {parsed.drivername}: {without_secrets(error, self._secrets)}; give a "
                "database URL such as sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
            ) from None

    def has_table(self, name: str) -> bool:
        """Whether this table exists; raises DatabaseError."""
        with self._errors():
            return inspect(self._engine).has_table(name)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Context of one transaction; raises DatabaseError."""
        with self._errors(), self._engine.begin() as connection:
            yield partial(_execute, connection)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, ValueError, TypeError) as error:
            is_locked = is_locked_by_another(getattr(error, "orig", None))
            raise DatabaseError(without_secrets(error, self._secrets), is_locked) from error

    def close(self) -> None:
        self._engine.dispose()


def _execute(
    connection: Connection, statement: str, values: Mapping[str, object] | Sequence[Mapping[str, object]] = ()
) -> Sequence[Sequence[Any]]:
    result = connection.execute(text(statement), values or None)
    return result.all() if result.returns_rows else []
