# SPDX-License-Identifier: GPL-2.0-or-later
"""Closed months: one file for the parts of a shard, each interval at most once at every instant, whoever is killed."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from pyarrow import parquet
from sqlalchemy import Table, func, select

from fastenough.cli import farm_compact
from fastenough.fleet import tables
from fastenough.fleet.archive import VERSION_KEY, FleetArchive, Partition
from fastenough.fleet.board_rows import board_groups, rows_of, shard_files
from fastenough.fleet.compaction import CompactedPartition, closed_partitions, compact, is_closed
from fastenough.fleet.simulated import CPUS, SimulatedBoard
from fastenough.history import OWNER, History, board_of, close_months, distribution
from fastenough.history.results import MissingSpan
from fastenough.history.rollups import DAY_S, month_begin_s, next_month_s
from fastenough.history.schema import EVENT, HOUR_S, INTERVAL
from fastenough.model import BadInput, FastenoughError
from fastenough.web.pages.figures import distribution_document
from tests.support.fleet_shard import BEGIN_S, ShardBench, board, fail_after_the_part, intervals
from tests.support.postgresql import running_server

_NEXT_YEAR_S = BEGIN_S + 366 * 86400


class _Killed(Exception):
    pass


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ShardBench]:
    one = _filled(tmp_path)
    yield one
    one.history.close()


def _filled(folder: Path, database: str = "") -> ShardBench:
    one = ShardBench(folder, database=database)
    for first in range(4):
        one.store(board().chunk(first, 1))
    one.history.wall_s = lambda: _NEXT_YEAR_S
    return one


def _compact(bench: ShardBench) -> list[CompactedPartition]:
    archive = FleetArchive(str(bench.folder))
    found = [compact(archive, bench.history, one) for one in closed_partitions(archive, bench.history.wall_s())]
    return [one for one in found if one is not None]


def _seen(bench: ShardBench) -> list[tuple[str, int, int]]:
    """As a reader sees the archive that knows nothing of us."""
    with duckdb.connect() as engine:
        engine.execute(f"SELECT run, cpu, interval FROM read_parquet('{bench.folder}/**/*.parquet') ORDER BY ALL")
        return engine.fetchall()


def test_the_parts_of_a_closed_month_become_one_file(bench: ShardBench) -> None:
    assert [(one.files, one.rows) for one in _compact(bench)] == [(4, 4 * CPUS)]
    assert _seen(bench) == bench.stored() == intervals(4)
    assert len(list(bench.folder.rglob("*.*"))) == 1
    assert not _compact(bench)


def test_a_merged_file_has_the_columns_of_its_parts(bench: ShardBench) -> None:
    archive = FleetArchive(str(bench.folder))
    (partition,) = archive.partitions()
    before = archive.dataset([f"{partition.folder}/{archive.names(partition)[0]}"]).schema
    _compact(bench)
    (name,) = archive.names(partition)
    after = archive.dataset([f"{partition.folder}/{name}"]).schema
    assert [(one.name, one.type) for one in after] == [(one.name, one.type) for one in before]
    assert after.metadata[VERSION_KEY.encode()] == before.metadata[VERSION_KEY.encode()]


@pytest.mark.check
def test_what_is_published_later_is_merged_by_the_next_call(bench: ShardBench) -> None:
    _compact(bench)
    bench.store(board().chunk(4, 2))
    assert [(one.files, one.rows) for one in _compact(bench)] == [(2, 6 * CPUS)]
    assert _seen(bench) == intervals(6)


@pytest.mark.parametrize(("month", "closed"), [("2026-11", True), ("2026-12", False), ("2027-01", False)])
def test_a_month_is_closed_two_days_after_its_end(month: str, closed: bool) -> None:
    assert is_closed(month, 1_796_256_000.0) is closed  # 2026-12-03, 0:00
    assert is_closed("2026-11", 1_796_255_999.0) is False


def test_open_months_stay_as_they_are(bench: ShardBench) -> None:
    bench.history.wall_s = lambda: BEGIN_S + 3600
    assert not _compact(bench)
    assert len(list(bench.folder.rglob("*.parquet"))) == 4


def test_a_part_that_was_not_committed_is_left_to_its_taker(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_after_the_part(bench, monkeypatch, board().chunk(4, 1))
    assert [one.files for one in _compact(bench)] == [4]
    bench.start()
    bench.store(board().chunk(4, 1))
    assert _seen(bench) == intervals(5)


def _die_at(name: str, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process that is killed just before it changes the archive for the nth time in one way."""
    act: Callable[..., None] = getattr(FleetArchive, name)
    left = [nth]

    def dying(self: FleetArchive, *words: object) -> None:
        if not left[0]:
            raise _Killed
        left[0] -= 1
        act(self, *words)

    monkeypatch.setattr(FleetArchive, name, dying)


@pytest.mark.check
@pytest.mark.parametrize(("name", "nth"), [("put", 0), ("remove", 0), ("remove", 2), ("move", 0)])
def test_whoever_is_killed_doubles_and_loses_nothing(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch, name: str, nth: int
) -> None:
    with monkeypatch.context() as patched, pytest.raises(_Killed):
        _die_at(name, nth, patched)
        _compact(bench)
    if list(bench.folder.rglob("*.parquet")):
        assert len(set(_seen(bench))) == len(_seen(bench))
    bench.store(board().chunk(4, 1))
    _compact(bench)
    assert _seen(bench) == intervals(5)
    assert len(list(bench.folder.rglob("*.*"))) == 1


def _read(bench: ShardBench) -> list[tuple[str, int, int]]:
    """As the commands of fastenough read the archive."""
    boards = [
        board_rows
        for files in shard_files(str(bench.folder))
        for group in board_groups(files)
        for board_rows in rows_of(files, group, ["count"])
    ]
    return sorted((row["run"], row["cpu"], row["interval"]) for read in boards for row in read.rows.to_pylist())


@pytest.mark.check
@pytest.mark.parametrize(("name", "nth"), [("put", 0), ("remove", 0), ("remove", 1), ("remove", 3), ("move", 0)])
def test_jobs_read_each_interval_once_although_a_merge_was_killed(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch, name: str, nth: int
) -> None:
    with monkeypatch.context() as patched, pytest.raises(_Killed):
        _die_at(name, nth, patched)
        _compact(bench)
    bench.store(board().chunk(4, 1))
    assert _read(bench) == intervals(5)
    _compact(bench)
    assert _read(bench) == intervals(5)


def test_jobs_read_each_interval_once_at_each_step_of_a_merge(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a second merge, which replaces the file of the first one."""
    seen: list[str] = []

    def read(name: str) -> None:
        if name != "metadata":
            seen.append(name)
            with monkeypatch.context() as undisturbed:
                for step, act in unpatched.items():
                    undisturbed.setattr(FleetArchive, step, act)
                assert _read(bench) == intervals(count)

    unpatched = {name: getattr(FleetArchive, name) for name in ("metadata", "put", "remove", "move")}
    for count in (4, 5):
        with monkeypatch.context() as patched:
            _before_each_change(read, patched)
            assert _compact(bench)
        assert _read(bench) == intervals(count)
        bench.store(board().chunk(count, 1))
    assert seen.count("put") == seen.count("move") == 2 and seen.count("remove") == 4 + 2


def test_a_listing_during_a_merge_is_repeated(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may miss the merged file, which was written after its folder was read, and parts that were removed since."""
    with monkeypatch.context() as patched, pytest.raises(_Killed):
        _die_at("remove", 2, patched)
        _compact(bench)
    listings = [0]
    paths = FleetArchive._paths

    def listed(self: FleetArchive, folder: str) -> list[str]:
        listings[0] += 1
        return [path for path in paths(self, folder) if listings[0] > 1 or "closed" not in path]

    monkeypatch.setattr(FleetArchive, "_paths", listed)
    assert _read(bench) == intervals(4)
    assert listings == [3]


def _before_each_change(act: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call a function before the archive is read or changed, with the name of the step."""

    def with_act(name: str) -> Callable[..., Any]:
        step = getattr(FleetArchive, name)

        def acting(self: FleetArchive, *words: Any) -> Any:
            act(name)
            return step(self, *words)

        return acting

    for name in ("metadata", "put", "remove", "move"):
        monkeypatch.setattr(FleetArchive, name, with_act(name))


def test_another_connection_writes_at_each_step_of_a_merge(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait at all, so that any lock of the merge would refuse it."""
    steps: list[str] = []

    def write(name: str) -> None:
        steps.append(name)
        database = bench.folder.parent / "history.sqlite"
        with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE fleet_shard SET sequence = sequence")
            other.execute("COMMIT")

    with monkeypatch.context() as patched:
        _before_each_change(write, patched)
        assert [one.files for one in _compact(bench)] == [4]
    assert set(steps) == {"metadata", "put", "remove", "move"}
    assert _seen(bench) == intervals(4)


def _store_at(step: str, bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A taker stores one more chunk when a merge has come to this step."""
    left = [4]

    def store(name: str) -> None:
        if name == step and left:
            bench.store(board().chunk(left.pop(), 1))

    _before_each_change(store, monkeypatch)


@pytest.mark.check
@pytest.mark.parametrize("step", ["metadata", "put", "remove", "move"])
def test_what_a_taker_stores_during_a_merge_is_kept(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patched:
        _store_at(step, bench, patched)
        assert [(one.files, one.rows) for one in _compact(bench)] == [(4, 4 * CPUS)]
    assert _seen(bench) == intervals(5)
    assert [(one.files, one.rows) for one in _compact(bench)] == [(2, 5 * CPUS)]


def _two_at_once(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> list[list[CompactedPartition]]:
    """Results of two merges; the second one begins while the first is about to write."""
    reached, free = threading.Event(), threading.Event()
    results: dict[str, list[CompactedPartition]] = {}
    listed: list[str] = []
    names = FleetArchive.names

    def hold(step: str) -> None:
        if step == "put":
            reached.set()
            free.wait(60)

    def noted(self: FleetArchive, partition: Partition) -> list[str]:
        listed.append(threading.current_thread().name)
        return names(self, partition)

    def merge(name: str) -> threading.Thread:
        thread = threading.Thread(target=lambda: results.update({name: _compact(bench)}), name=name)
        thread.start()
        return thread

    with monkeypatch.context() as patched:
        _before_each_change(hold, patched)
        patched.setattr(FleetArchive, "names", noted)
        first = merge("first")
        assert reached.wait(60)
        second = merge("second")
        time.sleep(0.5)
        assert set(listed) == {"first"}
        free.set()
        for thread in (first, second):
            thread.join(60)
    return [results["first"], results["second"]]


def test_a_second_merge_waits_for_the_first(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _two_at_once(bench, monkeypatch)
    assert [one.files for one in first] == [4] and second == []
    assert _seen(bench) == intervals(4)


@pytest.mark.slow
def test_takers_with_postgresql_do_not_wait_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the shard is not locked; a second merge waits."""
    with running_server() as server:
        bench = _filled(tmp_path, server.url)
        with monkeypatch.context() as patched:
            _store_at("remove", bench, patched)
            assert [one.files for one in _compact(bench)] == [4]
        bench.store(board().chunk(5, 1))
        first, second = _two_at_once(bench, monkeypatch)
        assert [one.files for one in first] == [3] and second == []
        assert _seen(bench) == intervals(6)
        bench.history.close()


def test_a_merged_file_that_was_cut_off_is_written_again(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, pytest.raises(_Killed):
        _die_at("remove", 0, patched)
        _compact(bench)
    (unfinished,) = bench.folder.rglob("_*")
    unfinished.write_bytes(unfinished.read_bytes()[:-9])
    _compact(bench)
    assert _seen(bench) == intervals(4)


def test_a_copied_part_is_refused_and_nothing_removed(bench: ShardBench) -> None:
    part = min(bench.folder.rglob("*.parquet"))
    part.with_name("0000-000000000000.parquet").write_bytes(part.read_bytes())
    with pytest.raises(FastenoughError):
        _compact(bench)
    assert len(list(bench.folder.rglob("*.*"))) == 5


def _command(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[dict[str, Any]] | None, BaseException | None]:
    """Merges that ``farm compact`` reports, if any, and its error."""
    monkeypatch.setattr(tables, "opened", lambda url: bench.history)
    done = CliRunner().invoke(farm_compact.command, [f"--archive={bench.folder}", "--json"])
    return json.loads(done.stdout)["compacted"] if done.stdout else None, done.exception


def _cut_off(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:-9])


def _with_other_values(part: Path) -> None:
    content = bytearray(part.read_bytes())
    content[100:300] = bytes(200)
    part.write_bytes(content)


def _copy(part: Path) -> None:
    part.with_name("0000-000000000000.parquet").write_bytes(part.read_bytes())


@pytest.mark.check
@pytest.mark.parametrize("damage", [_cut_off, _with_other_values, _copy])
def test_a_partition_that_cannot_be_merged_stops_no_other(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    for first in range(4, 6):
        bench.store(replace(board().chunk(first, 1), type="a"))
    damage(min(bench.folder.glob("type=a/**/*.parquet")))
    before = sorted(bench.folder.glob("type=a/**/*.parquet"))
    done, error = _command(bench, monkeypatch)
    assert [(one["type"], one["files"]) for one in done or []] == [("simulated", 4)]
    assert isinstance(error, FastenoughError)
    assert sorted(bench.folder.glob("type=a/**/*.parquet")) == before


def test_old_rows_of_boards_that_publish_leave_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages report them as missing; sums of whole months remain."""
    bench, watched = ShardBench(tmp_path), replace(board(), watched=True)
    bench.store(watched.chunk(0, 12))
    begin_s, month_s, end_s = int(BEGIN_S), month_begin_s(int(BEGIN_S)), next_month_s(int(BEGIN_S))
    for days, rows, events in ((59, 3 * CPUS, 2), (60, 0, 2), (364, 0, 2), (365, 0, 0)):
        bench.history.wall_s = partial(float, end_s + days * DAY_S)
        assert _command(bench, monkeypatch) == ([], None)
        assert (_rows(bench, INTERVAL), _rows(bench, EVENT)) == (rows, events), days
    bench.store(watched.chunk(12, 1))
    assert _rows(bench, INTERVAL) == CPUS
    _command(bench, monkeypatch)
    assert _rows(bench, INTERVAL) == 0
    span = begin_s - begin_s % 300, begin_s + 900
    part = distribution(bench.history, OWNER, board().machine, "timer/wakeup", *span)
    assert (part.cpus, part.missing) == ({}, (MissingSpan(*span, in_fleet_archive=True),))
    whole = distribution(bench.history, OWNER, board().machine, "timer/wakeup", month_s, end_s)
    assert [int(buckets.count.sum()) for buckets in whole.cpus.values()] == [13 * 200] * CPUS
    assert whole.missing == ()
    _require_query_reads_archive(bench, (span[0], span[0] + 300))
    bench.history.close()


def test_a_website_with_the_database_of_takers_leaves_late_rows_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, other = ShardBench(tmp_path), History.at(f"sqlite:///{tmp_path}/history.sqlite", tmp_path / "closed")
    bench.store(board().chunk(0, 12))
    bench.history.wall_s = lambda: _NEXT_YEAR_S
    assert _command(bench, monkeypatch) == ([], None)
    bench.store(board().chunk(12, 1))
    assert close_months(other, int(_NEXT_YEAR_S)) == []
    assert _rows(bench, INTERVAL) == CPUS
    other.close()
    bench.history.close()


def _require_query_reads_archive(bench: ShardBench, span: tuple[int, int]) -> None:
    """The query that a page shows returns the archived intervals of the missing time."""
    part = distribution(bench.history, OWNER, board().machine, "timer/wakeup", *span)
    document = distribution_document(part, board_of(bench.history, OWNER, board().machine))
    (missing,) = document["missing"]
    assert (missing["begin_s"], missing["end_s"]) == span
    with duckdb.connect() as duck:
        rows = duck.execute(missing["query"].replace("ARCHIVE", str(bench.folder))).fetchall()
    archived = [row for path in bench.folder.rglob("*.parquet") for row in parquet.read_table(path).to_pylist()]
    expected = [
        (row["begin_ns"] // 10**9, row["cpu"], row["count"], row["max_ns"])
        for row in archived
        if span[0] * 10**9 <= row["begin_ns"] < span[1] * 10**9
    ]
    found = [(int(at.replace(tzinfo=UTC).timestamp()), cpu, count, most) for at, cpu, _, count, _, _, most in rows]
    assert found == sorted(expected) and 0 < len(found) < len(archived)


@dataclass(frozen=True)
class _TwoSeriesBoard(SimulatedBoard):
    """Each CPU measures the same values under two names."""

    def head(self) -> bytes:
        return _doubled(super().head())

    def interval(self, number: int) -> bytes:
        return _doubled(super().interval(number))


def _doubled(raw: bytes) -> bytes:
    line = json.loads(raw)
    others = [{**series, "id": series["id"] + CPUS} for series in line["series"]]
    line["series"] += [{**series, "name": "other"} if "name" in series else series for series in others]
    return json.dumps(line).encode() + b"\n"


def test_rows_that_only_the_database_has_stay_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive has one series of each CPU: all rows of a run of several stay, and none of another run."""
    bench = ShardBench(tmp_path)
    bench.store(_TwoSeriesBoard(0, 60.0, BEGIN_S, 0.0).chunk(0, 12))
    bench.history.wall_s = lambda: _NEXT_YEAR_S
    assert _command(bench, monkeypatch) == ([], None)
    assert _rows(bench, INTERVAL) == 2 * 3 * CPUS and len(_seen(bench)) == 12 * CPUS
    begin_s = int(BEGIN_S) - int(BEGIN_S) % 300
    for series in ("timer/wakeup", "timer/other"):
        part = distribution(bench.history, OWNER, board().machine, series, begin_s, begin_s + 900)
        assert [int(buckets.count.sum()) for buckets in part.cpus.values()] == [12 * 200] * CPUS
        assert part.missing == ()
    bench.store(SimulatedBoard(0, 60.0, BEGIN_S + HOUR_S, 0.0).chunk(0, 12))
    assert _rows(bench, INTERVAL) == 3 * 3 * CPUS
    _command(bench, monkeypatch)
    assert _rows(bench, INTERVAL) == 2 * 3 * CPUS
    later = distribution(bench.history, OWNER, board().machine, "timer/wakeup", begin_s, begin_s + HOUR_S + 900)
    assert [int(buckets.count.sum()) for buckets in later.cpus.values()] == [12 * 200] * CPUS
    assert [span.in_fleet_archive for span in later.missing] == [True]
    bench.history.close()


def _rows(bench: ShardBench, table: Table) -> int:
    with bench.history.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def test_nothing_is_merged_by_another_database(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.history.writing() as connection:
        connection.execute(tables.SHARD.delete())
    done, error = _command(bench, monkeypatch)
    assert done is None and isinstance(error, BadInput)
    assert _seen(bench) == intervals(4)


def test_an_archive_without_closed_months_is_merged_by_any_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _command(ShardBench(tmp_path), monkeypatch) == ([], None)


def test_other_files_are_no_part(bench: ShardBench) -> None:
    (folder,) = {path.parent for path in bench.folder.rglob("*.parquet")}
    for name in ("notes.txt", "0000-000000000009.parquet.bak", "closed-x.parquet"):
        (folder / name).write_text("by hand")
    (bench.folder / "type=a").mkdir()
    assert [one.files for one in _compact(bench)] == [4]
    assert {path.name for path in folder.iterdir()} > {"notes.txt", "closed-x.parquet"}


@pytest.mark.parametrize("location", ["ftp://host/x", "s3:///", "nonsense://a", "s3://"])
def test_a_place_that_is_no_archive_is_refused(location: str) -> None:
    with pytest.raises(BadInput):
        FleetArchive(location)


def test_partitions_are_read_back(tmp_path: Path) -> None:
    archive = FleetArchive(str(tmp_path))
    partition = Partition("a-b.c", "2026-01", 15)
    archive.put(f"{partition.folder}/x", [b"1"])
    assert archive.partitions() == [partition]
