# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions about the archive of a fleet in SQL, which any engine answers alike, and an archive to ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from fastenough.fleet.chunk import shard_of
from fastenough.fleet.compaction import closed_partitions, compact
from fastenough.fleet.simulated import SimulatedBoard
from tests.support.fleet_shard import BEGIN_S, ShardBench, board

LIMIT_NS = 20_000
INTERVALS = 6
QUESTIONS = {
    "maximum of each type": "SELECT type, max(max_ns) FROM archive GROUP BY type",
    "values and lost ones of each board": "SELECT board, sum(count), sum(lost) FROM archive GROUP BY board",
    "intervals of each CPU": "SELECT board, cpu, count(*) FROM archive GROUP BY board, cpu",
    "three intervals with the greatest maxima": (
        "SELECT board, cpu, interval FROM archive ORDER BY max_ns DESC, board, cpu, interval LIMIT 3"
    ),
    "values in buckets above a limit, by board": (
        "SELECT board, sum(n) FROM (SELECT board, unnest(bucket_ns) AS ns, unnest(bucket_count) AS n FROM archive) "
        f"WHERE ns >= {LIMIT_NS} GROUP BY board"
    ),
}
Rows = list[tuple[object, ...]]


def boards() -> list[SimulatedBoard]:
    """Three of one shard."""
    wanted = shard_of(board().machine)
    return [one for one in map(board, range(100)) if shard_of(one.machine) == wanted][:3]


@contextmanager
def filled_archive(folder: Path, *, merged: bool) -> Iterator[ShardBench]:
    """`INTERVALS` of each of the boards, in three files or in one."""
    bench = ShardBench(folder)
    try:
        for first in range(0, INTERVALS, 2):
            bench.store(*(one.chunk(first, 2) for one in boards()))
        if merged:
            (partition,) = closed_partitions(bench.archive, BEGIN_S + 366 * 86400)
            assert compact(bench.archive, bench.history, partition) is not None
        yield bench
    finally:
        bench.history.close()


def by_duckdb(folder: Path) -> dict[str, Rows]:
    """The answers, each in order."""
    with duckdb.connect() as engine:
        engine.execute(f"CREATE VIEW archive AS FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)")
        return {name: sorted(engine.execute(text).fetchall()) for name, text in QUESTIONS.items()}
