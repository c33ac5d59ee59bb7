# SPDX-License-Identifier: GPL-2.0-or-later
"""Events in the archive: each wake-up that a monitor recorded, once, with its cause, whatever comes twice or fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow.dataset import dataset

from fastenough.fleet.archive import EVENTS, FleetArchive
from fastenough.fleet.compaction import closed_partitions, compact
from fastenough.fleet.stream import StreamState
from fastenough.model import FastenoughError
from tests.support.fleet_shard import BEGIN_S, ShardBench, board, fail_after_the_part
from tests.support.recorded_causes import CULPRITS, CausedRun, seen_causes

RUN = CausedRun(1, "interrupt eth0")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ShardBench]:
    one = ShardBench(tmp_path)
    yield one
    one.history.close()


def _truth(*runs: CausedRun, intervals: int = 99) -> list[tuple[Any, ...]]:
    return sorted(
        (run.machine, run.run, number, run.cause, latency_ns)
        for run in runs
        for number, latency_ns in enumerate(run.latencies_ns[:intervals])
    )


def _seen(bench: ShardBench) -> list[tuple[Any, ...]]:
    return sorted(seen_causes(bench.folder))


def test_each_wakeup_is_stored_with_the_cause_that_the_monitor_names(bench: ShardBench) -> None:
    """Two of its series record each one."""
    runs = [CausedRun(number, cause) for number, cause in enumerate(CULPRITS)]
    bench.store(*(run.chunk(0, 4) for run in runs))
    assert sorted(_seen(bench), key=str) == sorted(_truth(*runs), key=str)


def test_events_are_stored_once_whatever_comes_again(bench: ShardBench) -> None:
    bench.store(RUN.chunk(0, 2), RUN.chunk(1, 2))
    bench.store(RUN.chunk(0, 2), RUN.chunk(0, 4), RUN.chunk(3, 1))
    assert _seen(bench) == _truth(RUN)


def test_events_after_the_last_interval_come_with_the_next_one(bench: ShardBench) -> None:
    """The publisher sends none; another one may, and sends them again."""
    first, second = RUN.chunk(0, 1), RUN.chunk(1, 3)
    early = tuple(line for line in second.lines if line.startswith(b'{"type":"event"') or b'"event"' in line[:40])[:2]
    bench.store(replace(first, lines=(*first.lines, *early)))
    assert _seen(bench) == _truth(RUN, intervals=1)
    bench.store(second)
    assert _seen(bench) == _truth(RUN)


def test_a_missing_chunk_leaves_no_event_behind(bench: ShardBench) -> None:
    bench.store(RUN.chunk(0, 1))
    bench.store(replace(RUN.chunk(2, 2), oldest=0))
    assert _seen(bench) == _truth(RUN, intervals=1)


@pytest.mark.parametrize("state", [None, StreamState("tomorrow", 0)], ids=["same stream", "new stream"])
def test_a_failed_transaction_leaves_no_event_behind(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch, state: StreamState | None
) -> None:
    bench.store(RUN.chunk(0, 1))
    fail_after_the_part(bench, monkeypatch, RUN.chunk(1, 2))
    assert len(_seen(bench)) == 3
    bench.position = bench.shard.position(state or StreamState("today", 10**6))
    assert _seen(bench) == _truth(RUN, intervals=1)
    bench.store(RUN.chunk(1, 1))
    bench.store(RUN.chunk(2, 2))
    assert _seen(bench) == _truth(RUN)


def test_a_repeated_transaction_replaces_the_events(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_after_the_part(bench, monkeypatch, RUN.chunk(0, 2))
    bench.store(RUN.chunk(0, 2))
    assert _seen(bench) == _truth(RUN, intervals=2)
    assert len(list(bench.folder.rglob(f"*{EVENTS.suffix}"))) == 1


def test_a_refused_chunk_has_no_events(bench: ShardBench) -> None:
    other = CausedRun(2, None)
    bad = replace(other.chunk(0, 1), lines=(*other.chunk(0, 1).lines, b"[1]\n"))
    assert bench.store(RUN.chunk(0, 4), bad).refused
    assert _seen(bench) == _truth(RUN)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("interrupt_ns", 10**400),
        ("runnable_to_running_ns", 10**30),
        ("task", "a\nb\x1b[31m"),
        ("task", "x" * 100_000),
        ("stack", "y" * 100_000),
        ("interrupt", "\ud800"),
        ("task_pid", -(10**30)),
        ("waited_for", {}),
    ],
)
def test_a_hostile_culprit_stops_no_chunk(bench: ShardBench, key: str, value: Any) -> None:
    """A chunk that the culprit makes invalid is refused; it was stored before there were events in the archive."""
    hostile = CausedRun(3, "interrupt eth0", extra=((key, value),))
    taken = bench.store(hostile.chunk(0, 4), RUN.chunk(0, 4))
    while taken.position.sequence < 2:
        taken = bench.store(RUN.chunk(0, 4))
    found = _seen(bench)
    assert [row for row in found if row[0] == RUN.machine] == _truth(RUN)
    for _, _, _, cause, latency_ns in found:
        assert cause is None or (cause.isprintable() and len(cause) <= 200)
        assert 0 <= latency_ns <= 2**62
    assert not taken.refused or value == {}


def _compacted(bench: ShardBench) -> dict[str, tuple[int, int]]:
    archive = FleetArchive(str(bench.folder))
    done = [compact(archive, bench.history, one) for one in closed_partitions(archive, bench.history.wall_s())]
    return {one.table: (one.files, one.rows) for one in done if one is not None}


def test_events_of_a_closed_month_are_merged(bench: ShardBench) -> None:
    for first in range(3):
        bench.store(RUN.chunk(first, 1))
    before = dataset([str(min(bench.folder.rglob("*.events")))], format="parquet").schema
    bench.history.wall_s = lambda: BEGIN_S + 366 * 86400
    assert _compacted(bench) == {"events": (3, 3), "intervals": (3, 6)}
    assert _seen(bench) == _truth(RUN, intervals=3)
    bench.store(RUN.chunk(3, 1))
    assert _compacted(bench) == {"events": (2, 4), "intervals": (2, 8)}
    assert _seen(bench) == _truth(RUN)
    (path,) = bench.folder.rglob("*.events")
    after = dataset([str(path)], format="parquet").schema
    assert [(one.name, one.type) for one in after] == [(one.name, one.type) for one in before]
    assert after.metadata[EVENTS.version_key.encode()] == before.metadata[EVENTS.version_key.encode()] == b"1"


def test_a_copied_file_of_events_is_not_merged(bench: ShardBench) -> None:
    bench.store(RUN.chunk(0, 1))
    bench.store(RUN.chunk(1, 1))
    part = min(bench.folder.rglob("*.events"))
    part.with_name("0000-000000000000.events").write_bytes(part.read_bytes())
    bench.history.wall_s = lambda: BEGIN_S + 366 * 86400
    with pytest.raises(FastenoughError, match="2 different events"):
        _compacted(bench)
    assert len(list(bench.folder.rglob("*.events"))) == 3


def test_a_merge_that_is_killed_doubles_and_loses_no_event(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in range(4):
        bench.store(RUN.chunk(first, 1))
    bench.history.wall_s = lambda: BEGIN_S + 366 * 86400
    for name in ("put", "remove", "move"):

        def dying(*_: object) -> None:
            raise InterruptedError

        with monkeypatch.context() as patched, pytest.raises(InterruptedError):
            patched.setattr(FleetArchive, name, dying)
            _compacted(bench)
        bench.shard.position(StreamState("today", 10**6))
    _compacted(bench)
    assert _seen(bench) == _truth(RUN)
    assert len(list(bench.folder.rglob("*.*"))) == 2


def test_readers_of_intervals_see_no_events(bench: ShardBench) -> None:
    """Queries that were written before there were events."""
    bench.store(RUN.chunk(0, 4), board().chunk(0, 1))
    with duckdb.connect() as engine:
        engine.execute(f"SELECT count(*), max(max_ns) > 0 FROM read_parquet('{bench.folder}/**/*.parquet')")
        assert engine.fetchone() == (10, True)
    assert dataset(bench.folder, format="parquet", partitioning="hive").count_rows() == 10
    assert bench.archive.count() == 10
    events = dataset(bench.folder / "_events", format="parquet", partitioning="hive").to_table()
    assert (events.num_rows, set(events["type"].to_pylist())) == (4, {"panel"})
