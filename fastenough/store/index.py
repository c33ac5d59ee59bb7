# SPDX-License-Identifier: GPL-2.0-or-later
"""The index: what can be asked of many runs without opening them.  It holds nothing that the runs do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, create_engine, delete, insert, select
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from fastenough.model import BadInput, FastenoughError
from fastenough.store.directory import RunSummary

INDEX_VERSION = 1
"""Part of the table's name: an index of another version is not migrated but made anew from the runs."""
_WIDE = {"begin_wall_ns", "duration_ns", "samples", "worst_ns", "bytes"}
_NARROW = {"position", "positions"}
_PER_STATEMENT = 500


def _column(name: str) -> Column[Any]:
    if name in _WIDE:
        return Column(name, BigInteger)
    if name in _NARROW:
        return Column(name, Integer)
    return Column(name, String, primary_key=name == "id", index=name in {"campaign", "probe", "load"})


_RUNS = Table(
    f"runs_v{INDEX_VERSION}", MetaData(),
    *(_column(field.name) for field in fields(RunSummary)), Column("place", String, index=True),
)


class Index:
    """Summaries by run; ``place`` tells apart several stores that share one database."""

    def __init__(self, url: str, place: str) -> None:
        self._url = url
        self._place = place
        memory = url == "sqlite://"
        arguments = {"timeout": 30} if url.startswith("sqlite") else {}
        try:
            self._engine: Engine = create_engine(
                url, poolclass=StaticPool if memory else NullPool, connect_args=arguments)
        except (SQLAlchemyError, ImportError) as error:
            raise BadInput(f"the index {url!r} cannot be used: {_first_line(error)}; give a database URL such as "
                           "sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME") from error
        with self._mendable():
            _RUNS.metadata.create_all(self._engine)

    @contextmanager
    def _mendable(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise FastenoughError(f"the index cannot be used: {_first_line(error)}; the runs are safe: mend the "
                                  "cause, then run 'fastenough store rebuild'") from error

    def put(self, summaries: Iterable[RunSummary]) -> None:
        """Insert or replace."""
        rows = [asdict(summary) | {"place": self._place} for summary in summaries]
        with self._mendable(), self._engine.begin() as connection:
            for begin in range(0, len(rows), _PER_STATEMENT):
                part = rows[begin:begin + _PER_STATEMENT]
                connection.execute(delete(_RUNS).where(_RUNS.c.id.in_([row["id"] for row in part])))
                connection.execute(insert(_RUNS), part)

    def remove(self, ids: Iterable[str]) -> None:
        wanted = list(ids)
        with self._mendable(), self._engine.begin() as connection:
            for begin in range(0, len(wanted), _PER_STATEMENT):
                connection.execute(delete(_RUNS).where(_RUNS.c.id.in_(wanted[begin:begin + _PER_STATEMENT])))

    def clear(self) -> None:
        """Forget this place's runs."""
        with self._mendable(), self._engine.begin() as connection:
            connection.execute(delete(_RUNS).where(_RUNS.c.place == self._place))

    def states(self) -> dict[str, str]:
        """State by id of this place's runs."""
        with self._mendable(), self._engine.connect() as connection:
            rows = connection.execute(select(_RUNS.c.id, _RUNS.c.state).where(_RUNS.c.place == self._place))
            return {str(row.id): str(row.state) for row in rows}

    def find(self, equal: dict[str, Any]) -> list[RunSummary]:
        """Runs whose fields equal those given, oldest first; raises BadInput for a field that runs do not have."""
        names = [field.name for field in fields(RunSummary)]
        unknown = set(equal) - set(names)
        if unknown:
            raise BadInput(f"runs have no field {', '.join(sorted(unknown))}; use {', '.join(names)}")
        question = select(_RUNS).order_by(_RUNS.c.id)
        for name, value in equal.items():
            question = question.where(_RUNS.c[name] == value)
        with self._mendable(), self._engine.connect() as connection:
            rows = connection.execute(question).mappings().all()
        return [RunSummary(**{name: row[name] for name in names}) for row in rows]

    def starting_with(self, prefix: str) -> list[tuple[str, str]]:
        """Id and place of every run whose id begins so."""
        question = select(_RUNS.c.id, _RUNS.c.place).where(_RUNS.c.id.startswith(prefix, autoescape=True))
        question = question.order_by(_RUNS.c.id)
        with self._mendable(), self._engine.connect() as connection:
            return [(str(row.id), str(row.place)) for row in connection.execute(question)]

    def close(self) -> None:
        self._engine.dispose()


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).partition("\n")[0]
