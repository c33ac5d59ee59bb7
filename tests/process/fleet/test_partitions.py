# SPDX-License-Identifier: GPL-2.0-or-later
"""Partitions of single intervals in PostgreSQL: takers make few."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from fastenough.fleet.simulated import SimulatedBoard
from fastenough.history import History
from fastenough.history.rollups import DAY_S
from tests.support.fleet_shard import BEGIN_S, ShardBench
from tests.support.postgresql import Server, empty, running_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
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
