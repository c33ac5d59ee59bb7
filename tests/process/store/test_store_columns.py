# SPDX-License-Identifier: GPL-2.0-or-later
"""Sealed columns say exactly what the recording says, or are passed over: a stale number must never be believed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from fastenough.folder import Folder
from fastenough.model import FastenoughError
from fastenough.recording import Recording, columns, interval_rows, read_recording, reader
from fastenough.recording.columns import FILES, INTERVALS_FILE, MANIFEST_FILE, TOTALS_FILE, SealedRecording
from fastenough.recording.histogram import bucket_index
from fastenough.recording.timeline import folded, packed
from fastenough.store import Store, directory
from fastenough.store.directory import LIVE_FILE, RUN_FILE, SEALED_FILE
from tests.process.store.test_store_runs import keep_run
from tests.support import recordings as made
from tests.support.cli_calls import environment, fastenough
from tests.support.privileges import require_root

pytestmark = pytest.mark.untimed

GOLDEN = Path(__file__).resolve().parents[3] / "format" / "golden"
WORDS = ("begin_mono_ns", "end_mono_ns", "begin_wall_ns", "end_wall_ns")
COURSE = ("at", "count", "lost", "missed", "minimum", "maximum", "offsets", "index", "bucket_count")


@pytest.mark.parametrize(
    ("extreme", "bytes_each"),
    [
        (2**15 - 1, 2),
        (-(2**15), 2),
        (2**15, 4),
        (-(2**15) - 1, 4),
        (2**31 - 1, 4),
        (2**31, 8),
        (-(2**31) - 1, 8),
        (2**62, 8),
    ],
)
def test_packed_values_are_the_same(extreme: int, bytes_each: int) -> None:
    values = np.array([0, extreme, 1], dtype=np.int64)
    assert packed(values).tolist() == values.tolist() and packed(values).itemsize == bytes_each
    assert not packed(values[:0]).size


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def keep(store: Store, **fields: Unpack[made.PlanFields]) -> str:
    """A run of two CPUs with rare long latencies, losses, missed periods and events."""
    writer = store.begin({})
    events: list[dict[str, Any]] = [
        {"kind": "max", "series": 0, "cpu": 0, "value": 7000},
        {"kind": "note", "text": "here"},
    ]
    values = made.latencies(3, intervals=6, per_interval=300)
    plan = replace(made.Plan(values, lost=3, missed=2, events=events), **fields)
    written = made.write(store.path / "scratch", replace(plan, run_id=writer.id))
    for line in written.read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return writer.id


def folder_of(store: Store, run: str) -> Path:
    return store.path / "runs" / run


def truth(store: Store, run: str) -> Recording:
    """What the text says, read whole."""
    return read_recording(folder_of(store, run) / SEALED_FILE)


def said(recording: Recording) -> Any:
    """All that a recording says but for its intervals one by one, as values that can be compared."""
    timeline = recording.timeline
    added = recording.aggregate
    return {
        "head": recording.head,
        "end": recording.end,
        "cut_off": recording.cut_off,
        "damage": recording.damage,
        "totals": {
            number: (
                total.k,
                total.index.tolist(),
                total.count.tolist(),
                total.minimum,
                total.maximum,
                total.sum,
                total.sum_sq,
            )
            for number, total in added.totals.items()
        },
        "rises": {number: (rises.k, rises.entries()) for number, rises in added.rises.items()},
        "sums": replace(added, totals={}, rises={}),
        "bounds": [getattr(timeline, word).tolist() for word in WORDS],
        "courses": {
            number: [course.k, *(getattr(course, word).tolist() for word in COURSE)]
            for number, course in timeline.courses.items()
        },
        "named": [
            {name: (values.tolist(), known.tolist()) for name, (values, known) in group.items()}
            for group in (timeline.counters, timeline.load)
        ],
        "events": list(recording.events),
    }


def rewrite(file: Path, content: bytes) -> None:
    file.unlink(missing_ok=True)
    file.write_bytes(content)


def believed(store: Store, run: str) -> bool:
    with Folder.at(folder_of(store, run)) as folder:
        sha256 = json.loads((folder_of(store, run) / RUN_FILE).read_text())["sha256"]
        return columns.stored_columns(SealedRecording(folder, SEALED_FILE, sha256, None)) is not None


# --- they say the same


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.jsonl")))
def test_of_every_golden_recording(tmp_path: Path, name: str) -> None:
    shutil.copy(GOLDEN / name, tmp_path / name)
    sha256 = hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest()
    with Folder.at(tmp_path) as folder:
        source = SealedRecording(folder, name, sha256, None)
        columns.make(source)
        kept = columns.stored_columns(source)
        assert kept is not None
        assert not columns.differ(source, kept)
        expected = read_recording(tmp_path / name)
        timeline = columns.timeline(source, kept.intervals_sha256, expected.series)
    last_line = None if kept.end is None else json.dumps(kept.end).encode()
    head, end = reader.ends_of(json.dumps(kept.head).encode(), last_line, name)
    mine = reader.assemble(
        name, head, end, kept.aggregate, intervals=(), events=expected.events, over_time=lambda: timeline
    )
    assert said(mine) == said(expected)
    assert mine.totals


def test_a_run_read_from_its_columns_is_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = keep(store)
    expected = truth(store, run)
    assert said(store.load(run)) == said(expected)
    assert [part.histograms[1].sum for part in store.load(run).intervals] == [
        part.histograms[1].sum for part in expected.intervals
    ]
    without = keep(store, events=[])

    def none(*_: object) -> None:
        raise AssertionError("the text was parsed")

    monkeypatch.setattr(reader.Reading, "__init__", none)
    assert store.load(run).totals[0].sum == expected.totals[0].sum
    assert len(store.load(run).timeline) == 6
    assert list(store.load(without).events) == []
    with pytest.raises(AssertionError):
        list(store.load(run).events)


def test_intervals_are_folded_but_exact_at_their_ends(store: Store) -> None:
    run = keep(store)
    timeline = store.load(run).timeline
    for number, course in timeline.courses.items():
        for place, part in enumerate(truth(store, run).intervals):
            values = part.histograms[number]
            index, count = course.buckets(course.within(place, place + 1))
            assert (course.minimum[place], course.maximum[place], course.count[place]) == (
                values.minimum,
                values.maximum,
                values.total,
            )
            coarse = folded(values.index, 10)
            assert index.tolist() == sorted(set(coarse.tolist()))
            assert count.tolist() == [int(values.count[coarse == one].sum()) for one in index]


@pytest.mark.parametrize("k", [4, 5, 10, 16])
def test_folding_puts_each_value_where_the_coarse_scale_has_it(k: int) -> None:
    values = np.array([0, 1, 15, 16, 31, 33, 1000, 12345, 10**9, 2**62, -1, -31, -12345, -(2**62)])
    fine = bucket_index(values, k)
    assert folded(fine, k).tolist() == bucket_index(values, 4).tolist()


@pytest.mark.slow
def test_the_verdict_is_the_same_from_columns_and_from_text(store: Store, tmp_path: Path) -> None:
    run = keep(store, lost=0, missed=0)
    from_columns = fastenough("report", run, "--limit", "80us", "--json", "--store", str(store.path), cwd=tmp_path)
    (tmp_path / "report").rename(tmp_path / "first")
    for file in FILES:
        (folder_of(store, run) / file).unlink()
        (folder_of(store, run) / file).mkdir()
    from_text = fastenough("report", run, "--limit", "80us", "--json", "--store", str(store.path), cwd=tmp_path)
    assert (from_text.returncode, from_text.stdout) == (from_columns.returncode, from_columns.stdout)
    for written in (tmp_path / "first").rglob("*.*"):
        if written.suffix in (".csv", ".svg"):
            assert written.read_bytes() == (tmp_path / "report" / written.relative_to(tmp_path / "first")).read_bytes()


# --- what does not fit is passed over


def _truncated(file: Path, other: Path) -> None:
    rewrite(file, file.read_bytes()[:-9])


def _empty(file: Path, other: Path) -> None:
    rewrite(file, b"")


def _flipped(place: float) -> Callable[[Path, Path], None]:
    def flip(file: Path, other: Path) -> None:
        content = bytearray(file.read_bytes())
        content[int(place * (len(content) - 1))] ^= 4
        rewrite(file, bytes(content))

    return flip


def _fifo(file: Path, other: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _link(file: Path, other: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _gone(file: Path, other: Path) -> None:
    file.unlink()


def _others(file: Path, other: Path) -> None:
    rewrite(file, (other / file.name).read_bytes())


DAMAGES = {
    "truncated": _truncated,
    "empty": _empty,
    "fifo": _fifo,
    "link": _link,
    "gone": _gone,
    "another run's": _others,
} | {f"bit flipped at {place}": _flipped(place) for place in (0, 0.3, 0.6, 0.97, 1)}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_damaged_columns_are_passed_over_and_made_again(store: Store, name: str, damage: str) -> None:
    run, other = keep(store), keep_run(store)
    expected = said(truth(store, run))
    DAMAGES[damage](folder_of(store, run) / name, folder_of(store, other))
    assert not believed(store, run)
    assert said(store.load(run)) == expected
    assert believed(store, run) == (damage not in ("fifo", "link"))
    assert store.verify() == {}, "the recording is as it was recorded"


def test_all_columns_of_another_run_under_this_ones_hash(store: Store) -> None:
    """Copied whole, and the hash of the recording edited in: the tables say themselves whose they are."""
    run, other = keep(store), keep(store, lost=0, events=[])
    mine = json.loads((folder_of(store, run) / MANIFEST_FILE).read_text())
    for name in FILES:
        _others(folder_of(store, run) / name, folder_of(store, other))
    theirs = json.loads((folder_of(store, run) / MANIFEST_FILE).read_text())
    rewrite(
        folder_of(store, run) / MANIFEST_FILE,
        json.dumps(theirs | {name: mine[name] for name in ("recording_sha256", "recording_file_sha256")}).encode(),
    )
    assert said(store.load(run)) == said(truth(store, run))


def test_a_recording_that_was_changed_is_not_saved_by_its_columns(store: Store) -> None:
    run = keep(store)
    assert believed(store, run)
    sealed = folder_of(store, run) / SEALED_FILE
    content = bytearray(sealed.read_bytes())
    content[len(content) // 2] ^= 1
    rewrite(sealed, bytes(content))
    assert store.load(run).damage is not None
    assert store.load(run).totals == {}


def test_events_of_a_recording_that_was_changed_since_are_not_believed(store: Store) -> None:
    """They are read later and alone; the last line is another, the events are the same."""
    run = keep(store)
    recording, whole = store.load(run), truth(store, run)
    sealed = folder_of(store, run) / SEALED_FILE
    lines = zstandard.ZstdDecompressor().stream_reader(sealed.read_bytes()).read().splitlines(keepends=True)
    rewrite(sealed, zstandard.compress(b"".join(lines[:-1])))
    assert list(whole.events)
    with pytest.raises(FastenoughError, match="not what was recorded"):
        list(recording.events)


def _sign(run: Path) -> None:
    """Make the hashes fit whatever the tables say now."""
    manifest = json.loads((run / MANIFEST_FILE).read_text())
    manifest |= {
        f"{name}_sha256": hashlib.sha256((run / f"{name}.parquet").read_bytes()).hexdigest()
        for name in ("totals", "intervals")
    }
    rewrite(run / MANIFEST_FILE, json.dumps(manifest).encode())


def _doctor(file: Path, column: str) -> None:
    """The table with another greatest value in its first row, within the same bucket."""
    table = pq.read_table(file)
    values = table[column].to_pylist()
    values[0] = values[0] ^ 1
    place = table.schema.get_field_index(column)
    rewrite(file, b"")
    with pq.ParquetWriter(file, table.schema) as writer:
        writer.write_table(table.set_column(place, table.schema.field(column), pa.array(values, pa.int64())))


@pytest.mark.parametrize("name", [TOTALS_FILE, INTERVALS_FILE])
def test_what_only_a_forger_can_do_is_named_by_verify_and_undone_by_rebuild(store: Store, name: str) -> None:
    run = keep(store)
    _doctor(folder_of(store, run) / name, "max")
    assert said(store.load(run)) == said(truth(store, run)), "no hash fits"
    _doctor(folder_of(store, run) / name, "max")
    _sign(folder_of(store, run))
    assert "its columns contradict its recording" in store.verify()[run]
    told = fastenough("store", "verify", "--store", str(store.path), cwd=store.path)
    assert (told.returncode, run in told.stdout.decode()) == (4, True)
    assert store.rebuild() == {}
    assert store.verify() == {}
    assert said(store.load(run)) == said(truth(store, run))


def test_sums_that_contradict_the_end_are_refused_even_where_hashes_fit(store: Store) -> None:
    run = keep(store)
    _doctor(folder_of(store, run) / TOTALS_FILE, "lost")
    _sign(folder_of(store, run))
    assert said(store.load(run)) == said(truth(store, run))


@pytest.mark.parametrize(
    "path",
    [
        "intervals",
        "begin_mono_ns",
        "counters/steal_ns/sum",
        "events/maximum",
        "load/ran",
        "covered_ns/0",
        "order/order_unknown/0",
    ],
)
@pytest.mark.parametrize("value", ["5", None, 0.5])
def test_sums_that_are_no_numbers_are_passed_over_even_where_hashes_fit(store: Store, path: str, value: Any) -> None:
    run = keep(store)
    file = folder_of(store, run) / TOTALS_FILE
    table = pq.read_table(file)
    beside = json.loads(table.schema.metadata[b"fastenough"])
    *above, last = path.split("/")
    place = beside
    for name in above:
        place = place.setdefault(name, {"known": 1, "sum": 1, "least": 1} if name == "steal_ns" else {})
    place[last] = value
    rewrite(file, b"")
    with pq.ParquetWriter(file, table.schema.with_metadata({b"fastenough": json.dumps(beside)})) as writer:
        writer.write_table(table)
    _sign(folder_of(store, run))
    assert said(store.load(run)) == said(truth(store, run))
    assert believed(store, run), "made again"


@pytest.mark.parametrize("name", [TOTALS_FILE, INTERVALS_FILE])
def test_more_rows_than_the_recording_can_hold_are_not_expanded(store: Store, name: str) -> None:
    """50 million rows of nothing take a few kilobytes in Parquet."""
    run = keep(store)
    file = folder_of(store, run) / name
    schema = pq.read_schema(file)
    nothing = pa.table([pa.nulls(500_000, field.type) for field in schema], schema=schema)
    rewrite(file, b"")
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(nothing)
    _sign(folder_of(store, run))
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    assert said(store.load(run)) == said(truth(store, run))
    assert pa.total_allocated_bytes() - before < 64 << 20


# --- nothing endangers the recording


def test_columns_of_another_users_folder_are_neither_believed_nor_made(store: Store) -> None:
    require_root("it gives a folder away")
    run, bare = keep(store), keep(store)
    (folder_of(store, bare) / TOTALS_FILE).unlink()
    for name in (run, bare):
        for path in (folder_of(store, name), *folder_of(store, name).iterdir()):
            os.chown(path, 1234, 1234)
    _doctor(folder_of(store, run) / TOTALS_FILE, "max")
    _sign(folder_of(store, run))
    assert not believed(store, run)
    for name in (run, bare):
        assert said(store.load(name)) == said(truth(store, name))
    assert not (folder_of(store, bare) / TOTALS_FILE).exists()


_FULL = """
import resource, signal, sys
from pathlib import Path
from fastenough.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
recording = Store(Path(sys.argv[1]), "sqlite://").load(sys.argv[2])
print(recording.totals[0].sum, len(recording.timeline), recording.damage)
"""


@pytest.mark.parametrize("room", [0, 900, 9000])
def test_a_disk_that_takes_no_more_costs_the_columns_only(store: Store, room: int) -> None:
    """Files may not grow beyond a size, as on a full disk; after that there is room again."""
    run = keep(store)
    expected = truth(store, run)
    for name in FILES:
        (folder_of(store, run) / name).unlink()
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(store.path), run, str(room)],
        env=environment(),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.stdout.split() == [str(expected.totals[0].sum), "6", "None"], done.stderr
    assert not believed(store, run)
    assert not list(folder_of(store, run).glob(".*"))
    assert said(store.load(run)) == said(expected)
    assert believed(store, run)


_REBUILD = """
import sys
from pathlib import Path
from fastenough.store import Store
Store(Path(sys.argv[1])).rebuild()
"""


_LOAD = """
import sys
from pathlib import Path
from fastenough.store import Store
for run in sys.argv[2:]:
    assert Store(Path(sys.argv[1]), "sqlite://").load(run).damage is None
"""


def _rebuilding(store: Store) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _REBUILD, str(store.path)], env=environment())


def test_killed_while_it_makes_columns(store: Store) -> None:
    """Whenever it dies, the recording is what it was, and the next one makes the rest and leaves no litter."""
    run = keep(store)
    expected = said(truth(store, run))
    chance = random.Random(7)
    for _ in range(6):
        for name in FILES:
            (folder_of(store, run) / name).unlink(missing_ok=True)
        process = _rebuilding(store)
        while process.poll() is None and not list(folder_of(store, run).glob(".*.new")):
            time.sleep(0.002)
        time.sleep(chance.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert said(read_recording(folder_of(store, run) / SEALED_FILE)) == expected
    (folder_of(store, run) / f".{INTERVALS_FILE}.0123.new").write_bytes(b"half")
    assert said(store.load(run)) == expected
    (folder_of(store, run) / MANIFEST_FILE).unlink()
    assert store.rebuild() == {}
    assert sorted(path.name for path in folder_of(store, run).iterdir()) == sorted((SEALED_FILE, RUN_FILE, *FILES))


def test_several_at_once(store: Store) -> None:
    runs = [keep(store) for _ in range(2)]
    expected = [said(truth(store, run)) for run in runs]
    for run in runs:
        (folder_of(store, run) / TOTALS_FILE).unlink()
    processes = [
        subprocess.Popen([sys.executable, "-c", _LOAD, str(store.path), *runs], env=environment()) for _ in range(3)
    ]
    while any(process.poll() is None for process in processes):
        assert [said(store.load(run)) for run in runs] == expected
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert [said(store.load(run)) for run in runs] == expected
    assert all(believed(store, run) for run in runs)


def test_a_run_ends_although_its_columns_fail(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(columns, "make", full)
    run = keep(store)
    [summary] = store.runs()
    assert (summary.state, summary.sha256 is not None) == ("ended", True)
    assert sorted(path.name for path in folder_of(store, run).iterdir()) == sorted((SEALED_FILE, RUN_FILE))
    assert said(store.load(run)) == said(truth(store, run))
    assert not (folder_of(store, run) / LIVE_FILE).exists()
    assert directory.SEALED_FILE == SEALED_FILE


# --- one pass, bounded


def _peak(folder: Path, intervals: int) -> int:
    folder.mkdir()
    plan = made.Plan(made.latencies(5, cpus=1, intervals=intervals, per_interval=100))
    content = made.write(folder / "recording.jsonl", plan).read_bytes()
    with Folder.at(folder) as opened:
        source = SealedRecording(opened, "recording.jsonl", hashlib.sha256(content).hexdigest(), len(content))
        del plan, content
        tracemalloc.start()
        columns.make(source)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert columns.stored_columns(source) is not None
    return peak


@pytest.mark.slow
def test_making_columns_takes_no_more_memory_for_more_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interval_rows, "ROWS_AT_ONCE", 64)
    _peak(tmp_path / "warm", 40)
    assert _peak(tmp_path / "long", 2100) < 1.3 * _peak(tmp_path / "short", 700)
