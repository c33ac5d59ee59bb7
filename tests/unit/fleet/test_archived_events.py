# SPDX-License-Identifier: GPL-2.0-or-later
"""Events in the archive: each wake-up that a monitor recorded, once, with its cause, whatever comes twice or fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet
from pyarrow.dataset import dataset

from fastenough.fleet.archive import EVENTS, FleetArchive
from fastenough.fleet.archived_events import event_rows
from fastenough.fleet.chunk import Chunk
from fastenough.fleet.compaction import closed_partitions, compact
from fastenough.fleet.stream import StreamState
from fastenough.model import FastenoughError
from fastenough.recording import Event
from fastenough.recording.building import line_bytes
from fastenough.recording.head import Instant
from fastenough.recording.reader import head_of
from tests.support.fleet_shard import BEGIN_S, STREAM, ShardBench, board, fail_after_the_part
from tests.support.recorded_causes import CULPRITS, CausedRun, seen_causes

pytestmark = pytest.mark.check

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


def test_the_whole_wakeup_is_archived_not_its_first_station(bench: ShardBench) -> None:
    bench.store(RUN.chunk(0, 4))
    rows = [row for path in bench.folder.rglob("*.parquet") for row in parquet.read_table(path).to_pylist()]
    of_cpu = [series["name"] for series in RUN.lines[0]["series"] if series["cpu"] == 0]
    assert of_cpu[0] == "expiry-to-interrupt" and len(of_cpu) > 2
    assert {row["series"] for row in rows} == {
        f"monitor/expiry-to-return station=expiry-to-return (1 of {len(of_cpu)})"
    }
    assert max(row["max_ns"] for row in rows) == max(RUN.latencies_ns)


def _begun_in_1970(chunk: Chunk) -> Chunk:
    """The same recording by a clock that was set just before the end of its first interval."""
    parts = [json.loads(line) for line in chunk.lines]
    (first,) = [place for place, part in enumerate(parts) if part["type"] == "interval" and part["seq"] == 0]
    late_ns = parts[first]["begin"]["wall_ns"] - 30 * 10**9
    for at in (parts[first]["begin"], *(event["at"] for event in parts[:first])):
        at["wall_ns"] -= late_ns
    return replace(chunk, lines=tuple(line_bytes(part) for part in parts))


def test_events_before_the_clock_was_set_are_dated_like_their_interval(tmp_path: Path) -> None:
    dates = []
    for folder, chunk in (("right", RUN.chunk(0, 4)), ("set", _begun_in_1970(RUN.chunk(0, 4)))):
        (tmp_path / folder).mkdir()
        other = ShardBench(tmp_path / folder)
        other.store(chunk)
        other.history.close()
        paths = other.folder.rglob(f"*{EVENTS.suffix}")
        rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
        dates.append(sorted((row["mono_ns"], row["at_ns"]) for row in rows))
    assert dates[0] == dates[1] and len(dates[0]) == len(RUN.latencies_ns)


def _suspended(chunk: Chunk) -> Chunk:
    """A chunk whose first interval was 8 h longer by the wall clock, for which the machine was suspended at its end."""
    parts = [json.loads(line) for line in chunk.lines]
    first = next(part for part in parts if part["type"] == "interval")
    first["counters"]["suspended_ns"] = 8 * 3600 * 10**9
    for part in parts[parts.index(first) :]:
        for name in {"begin", "end", "at"} & part.keys():
            if not (part is first and name == "begin"):
                part[name]["wall_ns"] += 8 * 3600 * 10**9
    return replace(chunk, lines=tuple(line_bytes(part) for part in parts))


def test_events_before_a_suspend_keep_their_dates(bench: ShardBench) -> None:
    """In suspend the wall clock continues, and was not set."""
    chunk = _suspended(RUN.chunk(0, 1))
    bench.history.wall_s = lambda: BEGIN_S + 9 * 3600
    bench.store(chunk)
    rows = [row for path in bench.folder.rglob(f"*{EVENTS.suffix}") for row in parquet.read_table(path).to_pylist()]
    parts = [json.loads(line) for line in chunk.lines]
    dates = {part["at"]["mono_ns"]: part["at"]["wall_ns"] for part in parts if part["type"] == "event"}
    assert rows and all(row["at_ns"] == dates[row["mono_ns"]] for row in rows)


def test_each_wakeup_of_an_interval_is_one_row() -> None:
    """Of two CPUs at one instant, without a culprit, and of series and kinds that are no wake-ups."""
    head = head_of(line_bytes(RUN.lines[0]), "run")
    numbers = {(series.name, series.cpu): series.id for series in head.series}

    def found(name: str, cpu: int, at_ns: int, value: int, cause: str | None = "-") -> Event:
        culprit = None if cause == "-" else CULPRITS[cause]
        return Event("max", Instant(at_ns, at_ns + 7), numbers[name, cpu], cpu, value, None, culprit)

    rows = event_rows(
        "b" * 32,
        "run",
        head,
        5,
        [
            found("expiry-to-return", 1, 2000, 900, None),
            found("runnable-to-running", 0, 2000, 700, "idle state C6"),
            found("expiry-to-return", 0, 2000, 800, "idle state C6"),
            found("expiry-to-interrupt", 0, 1000, 300),
            found("expiry-to-running", 0, 1000, 500),
            found("noise-thread", 0, 1500, 10**6, "interrupt eth0"),
            found("noise-thread", 0, 1600, 10**6),
            replace(found("expiry-to-return", 0, 3000, 1, "interrupt eth0"), kind="note"),
            replace(found("expiry-to-return", 0, 3100, 1), series=None),
            replace(found("expiry-to-return", 0, 3200, 1), value=None),
            found("expiry-to-return", 0, 3300, 10**30),
            replace(found("expiry-to-return", 0, 4000, 400, "interrupt eth0"), kind="threshold"),
        ],
    )
    assert [(row.number, row.mono_ns, row.at_ns, row.cpu, row.latency_ns, row.cause) for row in rows] == [
        (0, 1000, 1007, 0, 500, None),
        (1, 2000, 2007, 0, 800, "idle state C6"),
        (2, 2000, 2007, 1, 900, None),
        (3, 4000, 4007, 0, 400, "interrupt eth0"),
    ]
    assert [row.culprit is None for row in rows] == [True, False, False, False]
    assert {row.interval for row in rows} == {5}
    assert rows[1].series.startswith("monitor/expiry-to-return")


def test_events_of_a_probe_have_the_series_of_the_archive_and_no_cause() -> None:
    """A corrected series has the maxima of the one that it corrects; values in both directions are magnitudes."""
    head = json.loads(board().head())
    (cpu0, cpu1) = head["series"]
    head["series"] = [
        {**cpu0, "role": "diagnostic"},
        {**cpu0, "id": 5, "name": "wakeup_corrected", "corrected": True},
        {**cpu1, "name": "jitter", "two_sided": True},
        {**cpu1, "id": 6, "name": "delay", "role": "diagnostic"},
    ]
    head["parameters"]["threshold_ns"] = 50_000
    values = ((0, 60_000), (1, -70_000), (6, 80_000))
    events = [Event("max", Instant(at, at), number, None, value) for at, (number, value) in enumerate(values, 1)]
    rows = event_rows("b" * 32, "run", head_of(line_bytes(head), "run"), 0, events)
    assert [(row.series, row.cpu, row.latency_ns, row.cause, row.threshold_ns) for row in rows] == [
        ("timer/wakeup_corrected", 0, 60_000, None, 50_000),
        ("timer/jitter", 1, 70_000, None, 50_000),
    ]


@pytest.mark.parametrize("culprit", [None, {"task": "robot"}])
def test_series_of_one_name_differ_by_their_labels(culprit: dict[str, Any] | None) -> None:
    head = json.loads(board().head())
    cpu0, cpu1 = head["series"]
    cores = {cpu0["id"]: "linux", cpu1["id"]: "evl"}
    head["series"] = [{**series, "labels": {"core": cores[series["id"]]}} for series in (cpu0, cpu1)]
    events = [Event("max", Instant(9, 9), number, None, 60_000, None, culprit) for number in cores]
    rows = event_rows("b" * 32, "run", head_of(line_bytes(head), "run"), 0, events)
    assert [(row.cpu, row.series) for row in rows] == [
        (cpu, f"timer/wakeup core={core}") for cpu, core in enumerate(cores.values())
    ]


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
    bench.start(state or STREAM)
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
        bench.start()
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
