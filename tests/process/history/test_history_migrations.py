# SPDX-License-Identifier: GPL-2.0-or-later
"""A history of every older version, with data in it, becomes one of today; what it cannot be is said in a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, create_engine, inspect, select, text

from fastenough.history import History, catch_up
from fastenough.history.database import VERSION, migrate, version_of
from fastenough.history.schema import METADATA
from fastenough.model import BadInput, FastenoughError
from tests.support.farm_data import FarmData
from tests.support.history_rows import all_rows
from tests.support.postgresql import Server, empty, running_server

pytestmark = pytest.mark.machines

OLDER = [str(version) for version in range(1, int(VERSION))]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/old.sqlite"
    return empty(request.getfixturevalue("server"))


def _columns(engine: Engine) -> dict[str, Any]:
    looked = inspect(engine)
    return {
        name: (
            [(column["name"], str(column["type"]), column["nullable"]) for column in looked.get_columns(name)],
            looked.get_pk_constraint(name)["constrained_columns"],
            sorted(tuple(index["column_names"]) for index in looked.get_indexes(name)),
            sorted(tuple(one["column_names"]) for one in looked.get_unique_constraints(name)),
        )
        for name in METADATA.tables
    }


def _copied(new: History, old: Engine) -> None:
    """All rows of today's history into the tables of an older one, as far as it has them."""
    tables = MetaData()
    tables.reflect(old)
    with new.reading() as source, old.begin() as target:
        for name, table in METADATA.tables.items():
            if name in tables.tables:
                own = tables.tables[name].columns.keys()
                rows = [{key: row[key] for key in own} for row in source.execute(select(table)).mappings()]
                if rows:
                    target.execute(tables.tables[name].insert(), rows)


@pytest.mark.parametrize("version", OLDER)
def test_an_older_history_with_data(farm: FarmData, url: str, version: str, tmp_path: Path) -> None:
    today = History.at(f"sqlite:///{tmp_path}/today.sqlite")
    farm.declare(today)
    catch_up(today, farm.store)
    engine = create_engine(url)
    with engine.begin() as connection:
        migrate(connection, version)
        assert version_of(connection) == version
    _copied(today, engine)
    engine.dispose()
    migrated = History.at(url)
    assert all_rows(migrated) == all_rows(today)
    with migrated.reading() as connection:
        assert version_of(connection) == VERSION
    if url.startswith("sqlite"):  # of which both come: their types have other names elsewhere
        made = create_engine(f"sqlite:///{tmp_path}/made.sqlite")
        METADATA.create_all(made)
        assert _columns(migrated.engine) == _columns(made)


def test_a_history_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.sqlite"
    history = History.at(url)
    with history.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '99'"))
    with pytest.raises(FastenoughError, match="the history has version 99"):
        History.at(url)


def test_a_migration_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/history.sqlite")
    with engine.begin() as connection:
        migrate(connection, "1")
        connection.execute(text("CREATE TABLE archive (mine INTEGER)"))
    with pytest.raises(FastenoughError, match="archive already exists"):
        History.at(engine.url)
    with engine.connect() as connection:
        assert version_of(connection) == "1"
        assert not inspect(connection).has_table("month")


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "mysql+nosuch://x",
        "postgresql+psycopg://fe:secret@/x?host=/nowhere",
        "sqlite:////nowhere/at/all.sqlite",
    ],
)
def test_a_database_that_cannot_be_used_is_said_in_one_line(url: str) -> None:
    with pytest.raises((BadInput, FastenoughError)) as caught:
        History.at(url)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
