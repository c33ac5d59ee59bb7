# SPDX-License-Identifier: GPL-2.0-or-later
"""A history of every older version, with data in it, becomes one of today; what it cannot be is said in a line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, create_engine, inspect, select, text

from fastenough.history import (
    OWNER,
    BoardCondition,
    History,
    board_statuses,
    catch_up,
    declare,
    refresh_summaries,
)
from fastenough.history.database import VERSION, migrate, version_of
from fastenough.history.schema import METADATA, SUMMARY
from fastenough.model import BadInput, FastenoughError
from tests.support.farm_data import END_S, FarmData
from tests.support.history_rows import all_rows
from tests.support.postgresql import Server, empty, running_server

pytestmark = pytest.mark.untimed

OLDER = [str(version) for version in range(1, int(VERSION))]
FORMER_NAMES_SINCE, SUMMARIES_SINCE = 4, 6
"""The first versions with former names of boards, and with a table of summaries."""


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


FORMER_COLUMNS = {
    "board": {"watched": "is_declared", "shown": "display_facts", "formerly": "former_names"},
    "series": {"judged": "for_verdict"},
    "summary": {"words": "search_text"},
}
"""By table, columns before version 7 and their present names."""
FORMER_STATES = {"reserved": "lent"}
"""States of boards before version 7."""


def _former_row(table: str, row: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """A row as an older version stored it, which has these columns."""
    renamed = FORMER_COLUMNS.get(table, {})
    former = {column: row[renamed.get(column, column)] for column in columns}
    if table == "summary":  # version 8 inserted a state
        former["rank"] -= former["rank"] > BoardCondition.NOT_JUDGED.rank
    if table == "board" and "watched" in columns:
        former["state"] = FORMER_STATES.get(row["state"], row["state"])
    return former


def _copied(new: History, old: Engine) -> None:
    """All rows of today's history into the tables of an older one, as far as it has them."""
    tables = MetaData()
    tables.reflect(old)
    with new.reading() as source, old.begin() as target:
        for name, table in METADATA.tables.items():
            if name in tables.tables:
                own = tables.tables[name].columns.keys()
                rows = [_former_row(name, dict(row), own) for row in source.execute(select(table)).mappings()]
                if rows:
                    target.execute(tables.tables[name].insert(), rows)


def _conditions(history: History) -> dict[str, tuple[BoardCondition, str]]:
    return {one.board.name: (one.state, one.reason) for one in board_statuses(history, OWNER, END_S)}


@pytest.mark.slow
@pytest.mark.parametrize("version", OLDER)
def test_an_older_history_with_data(farm: FarmData, url: str, version: str, tmp_path: Path) -> None:
    today = History.at(f"sqlite:///{tmp_path}/today.sqlite")
    farm.declare(today)
    if int(version) >= FORMER_NAMES_SINCE:
        declare(today, farm.changed, former_names='["r9s9"]')
    declare(today, farm.silent, state="reserved", reason="reserved by desk/somebody")
    catch_up(today, farm.store)
    assert refresh_summaries(today, farm.end_s) == len(farm.boards)
    engine = create_engine(url)
    with engine.begin() as connection:
        migrate(connection, version)
        assert version_of(connection) == version
    _copied(today, engine)
    engine.dispose()
    migrated = History.at(url)
    assert all_rows(migrated) == all_rows(today)
    assert _conditions(migrated)[farm.silent] == (BoardCondition.RESERVED, "reserved by desk/somebody")
    with migrated.reading() as connection:
        assert version_of(connection) == VERSION
        summaries = sorted(map(tuple, connection.execute(select(SUMMARY))))
    with today.reading() as connection:
        expected = sorted(map(tuple, connection.execute(select(SUMMARY))))
    assert summaries == (expected if int(version) >= SUMMARIES_SINCE else [])
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
