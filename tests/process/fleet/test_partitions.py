# SPDX-License-Identifier: GPL-2.0-or-later
"""Partitions of single intervals in PostgreSQL: takers make few, and drop any number."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from fastenough.fleet import tables
from fastenough.fleet.simulated import SimulatedBoard
from fastenough.history import History
from fastenough.history.rollups import DAY_S
from tests.support.fleet_shard import BEGIN_S, ShardBench
from tests.support.postgresql import Server, empty, running_server

pytestmark = pytest.mark.slow
_MANY = 400


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One with the fewest locks, about 300: a transaction on this many tables fails."""
    with running_server() as found:
        with (found.directory / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write("max_locks_per_transaction = 10\nmax_connections = 10\n")
        found.stop()
        found.start()
        yield found


@pytest.fixture
def bench(server: Server, tmp_path: Path) -> Iterator[ShardBench]:
    made = ShardBench(tmp_path, database=empty(server))
    yield made
    made.history.close()


def _partitions(history: History) -> list[str]:
    with history.reading() as connection:
        return sorted(
            connection.scalars(text("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'")).all()
        )


def test_days_that_are_over_get_no_partition(bench: ShardBench) -> None:
    daily = SimulatedBoard(0, float(DAY_S), BEGIN_S // DAY_S * DAY_S - 30 * DAY_S, 0.0)
    bench.store(daily.chunk(0, 30))
    assert _partitions(bench.history) == [f"fleet_interval_202611{day}" for day in (16, 17)]


def test_any_number_of_partitions_is_dropped(bench: ShardBench) -> None:
    """As takers of earlier versions made them for a board with old times."""
    for first in range(0, _MANY, 50):
        with bench.history.writing() as connection:
            tables.ensure_days(connection, range(first, first + 50))
    bench.store(SimulatedBoard(0, 60.0, BEGIN_S, 0.0).chunk(0, 1))
    assert len(_partitions(bench.history)) == _MANY + 1
    bench.shard.drop_old_days()
    assert _partitions(bench.history) == ["fleet_interval_20261118"]
    bench.history.wall_s = partial(float, BEGIN_S + (tables.KEPT_DAYS + 1) * DAY_S)
    bench.shard.drop_old_days()
    assert _partitions(bench.history) == []
