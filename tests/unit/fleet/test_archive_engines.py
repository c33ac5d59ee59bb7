# SPDX-License-Identifier: GPL-2.0-or-later
"""The archive answers the same questions in any engine, on a disk and in an object store, merged or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from fastenough.fleet.archive import FleetArchive
from fastenough.fleet.chunk import shard_of
from fastenough.fleet.compaction import closed_partitions, compact
from fastenough.fleet.simulated import CPUS, SimulatedBoard
from tests.support.fleet_shard import BEGIN_S, ShardBench, board
from tests.support.object_store import object_store_url

_LIMIT_NS = 20_000
_INTERVALS = 6
_QUESTIONS = {
    "maximum of each type": "SELECT type, max(max_ns) FROM archive GROUP BY type",
    "values and lost ones of each board": "SELECT board, sum(count), sum(lost) FROM archive GROUP BY board",
    "intervals of each CPU": "SELECT board, cpu, count(*) FROM archive GROUP BY board, cpu",
    "three intervals with the greatest maxima": (
        "SELECT board, cpu, interval FROM archive ORDER BY max_ns DESC, board, cpu, interval LIMIT 3"
    ),
    "values in buckets above a limit, by board": (
        "SELECT board, sum(n) FROM (SELECT board, unnest(bucket_ns) AS ns, unnest(bucket_count) AS n FROM archive) "
        f"WHERE ns >= {_LIMIT_NS} GROUP BY board"
    ),
}
_Rows = list[tuple[object, ...]]


def _boards() -> list[SimulatedBoard]:
    """Three boards of one shard."""
    wanted = shard_of(board().machine)
    return [one for one in map(board, range(100)) if shard_of(one.machine) == wanted][:3]


@pytest.fixture(params=["parts", "merged"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ShardBench]:
    bench = ShardBench(tmp_path)
    for first in range(0, _INTERVALS, 2):
        bench.store(*(one.chunk(first, 2) for one in _boards()))
    if request.param == "merged":
        (partition,) = closed_partitions(bench.archive, BEGIN_S + 366 * 86400)
        assert compact(bench.archive, bench.history, partition) is not None
    yield bench
    bench.history.close()


def _by_duckdb(folder: Path) -> dict[str, _Rows]:
    with duckdb.connect() as engine:
        engine.execute(f"CREATE VIEW archive AS FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)")
        return {name: sorted(engine.execute(text).fetchall()) for name, text in _QUESTIONS.items()}


def _rows_of(frame: pd.DataFrame) -> _Rows:
    return sorted(frame.itertuples(index=False, name=None))


def _by_pandas(folder: Path) -> dict[str, _Rows]:
    rows = pd.read_parquet(folder)
    cells = rows[["board", "bucket_ns", "bucket_count"]].explode(["bucket_ns", "bucket_count"])
    above = cells[cells.bucket_ns >= _LIMIT_NS]
    greatest = rows.sort_values(["max_ns", "board", "cpu", "interval"], ascending=[False, True, True, True])
    frames = (
        rows.groupby("type", observed=True).max_ns.max().reset_index(),
        rows.groupby("board")[["count", "lost"]].sum().reset_index(),
        rows.groupby(["board", "cpu"]).size().reset_index(),
        greatest[["board", "cpu", "interval"]].head(3),
        above.groupby("board").bucket_count.sum().reset_index(),
    )
    return {name: _rows_of(frame) for name, frame in zip(_QUESTIONS, frames, strict=True)}


def test_all_engines_give_the_same_answers(filled: ShardBench) -> None:
    answers = _by_duckdb(filled.folder)
    assert answers == _by_pandas(filled.folder)
    assert answers["intervals of each CPU"] == sorted(
        (one.machine, cpu, _INTERVALS) for one in _boards() for cpu in range(CPUS)
    )
    assert len(answers["three intervals with the greatest maxima"]) == 3
    assert all(0 < int(str(row[1])) < _INTERVALS * CPUS * 200 for row in answers[[*_QUESTIONS][-1]])


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with object_store_url("bucket") as url:
        yield url


def test_an_object_store_holds_the_same(object_store: str, tmp_path: Path) -> None:
    bench = ShardBench(tmp_path, object_store)
    for first in range(3):
        bench.store(board().chunk(first, 1))
    assert bench.archive.count() == 3 * CPUS
    archive = FleetArchive(object_store)
    (partition,) = closed_partitions(archive, BEGIN_S + 366 * 86400)
    done = compact(archive, bench.history, partition)
    assert done is not None
    assert (done.files, done.rows) == (3, 3 * CPUS)
    (name,) = archive.names(partition)
    table = archive.dataset([f"{partition.folder}/{name}"]).to_table()
    assert np.unique(np.asarray(table["interval"])).tolist() == [0, 1, 2]
    bench.history.close()
