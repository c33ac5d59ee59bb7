# SPDX-License-Identifier: GPL-2.0-or-later
"""The archive answers the same questions in any engine, on a disk and in an object store, merged or not.

``make bench`` asks pandas and ClickHouse's engine as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import compute
from pyarrow.dataset import dataset

from fastenough.fleet.archive import FleetArchive
from fastenough.fleet.compaction import closed_partitions, compact
from fastenough.fleet.simulated import CPUS
from tests.support.archive_questions import INTERVALS, LIMIT_NS, QUESTIONS, Rows, boards, by_duckdb, filled_archive
from tests.support.fleet_shard import BEGIN_S, ShardBench, board
from tests.support.object_store import object_store_url


def _rows(table: arrow.Table, *columns: str) -> Rows:
    return sorted(zip(*(table[column].to_pylist() for column in columns), strict=True))


def _by_arrow(folder: Path) -> dict[str, Rows]:
    rows = dataset(folder, partitioning="hive").to_table()
    greatest = rows.sort_by([("max_ns", "descending"), *((name, "ascending") for name in ("board", "cpu", "interval"))])
    cells = arrow.table(
        {
            "board": rows["board"].take(compute.list_parent_indices(rows["bucket_ns"])),
            "ns": compute.list_flatten(rows["bucket_ns"]),
            "n": compute.list_flatten(rows["bucket_count"]),
        }
    )
    above = cells.filter(compute.greater_equal(cells["ns"], LIMIT_NS)).group_by("board").aggregate([("n", "sum")])
    values = rows.group_by("board").aggregate([("count", "sum"), ("lost", "sum")])
    each = rows.group_by(["board", "cpu"]).aggregate([([], "count_all")])
    answers = (
        _rows(rows.group_by("type").aggregate([("max_ns", "max")]), "type", "max_ns_max"),
        _rows(values, "board", "count_sum", "lost_sum"),
        _rows(each, "board", "cpu", "count_all"),
        _rows(greatest.slice(0, 3), "board", "cpu", "interval"),
        _rows(above, "board", "n_sum"),
    )
    return dict(zip(QUESTIONS, answers, strict=True))


@pytest.mark.parametrize("merged", [False, True])
def test_all_engines_give_the_same_answers(tmp_path: Path, merged: bool) -> None:
    with filled_archive(tmp_path, merged=merged) as bench:
        answers = by_duckdb(bench.folder)
        assert answers == _by_arrow(bench.folder)
    assert answers["intervals of each CPU"] == sorted(
        (one.machine, cpu, INTERVALS) for one in boards() for cpu in range(CPUS)
    )
    assert len(answers["three intervals with the greatest maxima"]) == 3
    assert all(0 < int(str(row[1])) < INTERVALS * CPUS * 200 for row in answers[[*QUESTIONS][-1]])


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with object_store_url("bucket") as url:
        yield url


@pytest.mark.check
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
