# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: runs are kept whole, found again, and never lost."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import pytest

from fastenough.model import BadInput, Outcome
from fastenough.recording import Histogram, columns
from fastenough.recording.building import end_series, interval_series, series_end
from fastenough.store import Store, new_run_id
from fastenough.store.directory import LIVE_FILE, RUN_FILE, SEALED_FILE
from tests.support.privileges import own_mounts
from tests.support.processes import ROOT, start_bench

pytestmark = pytest.mark.untimed

K = 10


def _raw(line: dict[str, object]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def head(run_id: str, load: str = "none") -> bytes:
    series = [
        {
            "id": 0,
            "name": "wakeup",
            "unit": "ns",
            "clock": "CLOCK_MONOTONIC",
            "from": "due",
            "to": "awake",
            "k": K,
            "cpu": 0,
        }
    ]
    return _raw(
        {
            "type": "head",
            "format": "fastenough-recording",
            "version": 1,
            "tool": {"name": "test", "version": "0"},
            "run_id": run_id,
            "probe": "timer",
            "implementation": "linux-user",
            "parameters": {},
            "series": series,
            "settings": [],
            "cost": {},
            "interval_ns": 10**9,
            "begin": {"mono_ns": 10**9, "wall_ns": 10**18},
            "marks": [],
            "load": {"name": load},
            "board": "here",
            "configuration": "this kernel",
        }
    )


def interval(seq: int, histogram: Histogram) -> bytes:
    begin = {"mono_ns": (seq + 1) * 10**9, "wall_ns": 10**18 + seq * 10**9}
    end = {"mono_ns": (seq + 2) * 10**9, "wall_ns": 10**18 + (seq + 1) * 10**9}
    return _raw(
        {
            "type": "interval",
            "seq": seq,
            "begin": begin,
            "end": end,
            "series": [interval_series(0, histogram)],
            "counters": {},
        }
    )


def end(total: Histogram, at_s: int) -> bytes:
    return _raw(
        {
            "type": "end",
            "outcome": "completed",
            "reasons": [],
            "at": {"mono_ns": at_s * 10**9, "wall_ns": 1},
            "series": [end_series(0, series_end(total))],
            "counters": {},
            "events_dropped": 0,
        }
    )


HISTOGRAM = Histogram.from_values(random.Random(1).choices(range(1000, 90_000), k=500), K)


def keep_run(store: Store, load: str = "none", intervals: int = 3) -> str:
    writer = store.begin({"campaign": "c", "plan_sha256": "p", "position": 0, "positions": 1})
    writer.line(head(writer.id, load))
    for seq in range(intervals):
        writer.line(interval(seq, HISTOGRAM))
    writer.line(end(Histogram.merged([HISTOGRAM] * intervals, K), intervals + 1))
    writer.end()
    return writer.id


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_run_is_kept_and_found(store: Store) -> None:
    run = keep_run(store, "cpu")
    recording = store.load(run)
    assert recording.outcome is Outcome.COMPLETED
    assert recording.totals[0].total == 1500
    [summary] = store.runs(load="cpu")
    assert (summary.id, summary.state, summary.outcome, summary.samples) == (run, "ended", "completed", 1500)
    assert summary.worst_ns == recording.totals[0].maximum
    assert (summary.campaign, summary.position, summary.duration_ns) == ("c", 0, 3 * 10**9)
    assert store.runs(load="vm") == []
    assert store.verify() == {}


def test_ids_sort_by_time_and_are_unique() -> None:
    ids = [new_run_id() for _ in range(50)]
    assert [run[:20] for run in ids] == sorted(run[:20] for run in ids)
    assert len(set(ids)) == 50


def _set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class HourBefore(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) - timedelta(hours=1)

    monkeypatch.setattr("fastenough.store.summary.datetime", HourBefore)


def test_of_a_campaign_the_newest_run_stands_though_the_clock_was_set_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was cut would be made again and again otherwise."""
    cut = store.begin({"campaign": "c", "position": 0})
    _set_back(monkeypatch)
    again = store.begin({"campaign": "c", "position": 0})
    assert [run.id for run in store.runs(campaign="c")] == [cut.id, again.id]
    for run in (cut, again):
        run.discard()


def test_the_last_run_is_the_one_begun_last_though_the_clock_was_set_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names no run means the one just made: its campaign is what a report without an id is on."""
    before = store.begin({"campaign": "before", "position": 0})
    _set_back(monkeypatch)
    runs = [store.begin({"campaign": "after", "position": 0}), store.begin()]
    assert store.newest_campaign() == "after"
    assert store.find("last") == runs[-1].id
    assert [run.id for run in store.runs()] == [before.id, *(run.id for run in runs)]
    for run in (before, *runs):
        run.discard()


def test_a_run_begins_though_another_process_holds_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.store.index._PATIENCE_S", 0)
    store = Store(tmp_path / "held")
    held = sqlite3.connect(store.path / "index.sqlite", isolation_level=None)
    held.execute("PRAGMA busy_timeout = 0")
    held.execute("BEGIN EXCLUSIVE")
    run = store.begin()
    assert store.index_fault is not None and "locked the index" in store.index_fault
    run.discard()
    held.close()


@pytest.mark.parametrize("after", ["", "zzz", "20261301T000000000Z-abc", "99991231T235959999Z-abc"])
def test_an_id_behind_one_that_tells_no_time_tells_the_time(after: str) -> None:
    assert new_run_id(after)[:4] == f"{datetime.now(UTC):%Y}"


def test_the_beginning_of_an_id_is_enough(store: Store) -> None:
    first, second = keep_run(store), keep_run(store)
    assert store.find(second) == store.find("last") == second
    with pytest.raises(BadInput, match="2 runs"):
        store.find(first[:4])
    with pytest.raises(BadInput, match="no run"):
        store.find("nothing")
    with pytest.raises(BadInput, match="no run"):
        store.find("%")


def test_a_field_that_runs_do_not_have(store: Store) -> None:
    with pytest.raises(BadInput, match="no field colour"):
        store.runs(colour="red")


def test_sealed_files_cannot_be_written(store: Store) -> None:
    directory = store.path / "runs" / keep_run(store)
    assert sorted(path.name for path in directory.iterdir()) == sorted((SEALED_FILE, RUN_FILE, *columns.FILES))
    assert all(path.stat().st_mode & 0o222 == 0 for path in directory.iterdir())


def test_the_index_is_made_again_from_the_runs(store: Store) -> None:
    for load in ("none", "cpu", "io"):
        keep_run(store, load)
    before = store.runs()
    store.close()
    (store.path / "index.sqlite").write_bytes(b"this is no database at all" * 100)
    again = Store(store.path)
    assert "not a database" in (again.index_fault or "")
    assert again.runs() == before
    assert again.rebuild() == {}
    assert again.index_fault is None
    assert again.runs() == before
    assert Store(store.path).index_fault is None


def test_a_store_without_an_index_sees_what_another_process_begins(store: Store) -> None:
    """Others may write into its folder, so that it keeps none: a website that is up for days has one in memory."""
    store.path.chmod(0o777)
    watching = Store(store.path)
    assert watching.runs() == []
    writer = Store(store.path).begin({"campaign": "night-1"})
    assert [run.state for run in watching.runs()] == ["running"] and watching.newest_campaign() == "night-1"
    assert watching.find("last") == writer.id


def test_a_damaged_run_is_reported_and_the_others_go_on(store: Store) -> None:
    good, bad, empty = keep_run(store), keep_run(store), keep_run(store)
    sealed = store.path / "runs" / bad / SEALED_FILE
    content = bytearray(sealed.read_bytes())
    content[len(content) // 2] ^= 0xFF
    sealed.chmod(0o644)
    sealed.write_bytes(content)
    (store.path / "runs" / empty / RUN_FILE).unlink()
    assert set(store.verify()) == {bad, empty}
    assert set(store.rebuild()) == {bad, empty}
    assert store.load(good).outcome is Outcome.COMPLETED
    assert {run.id: run.state for run in store.runs()} == {good: "ended", bad: "damaged", empty: "damaged"}


def test_content_that_was_exchanged_is_noticed(store: Store) -> None:
    one, other = keep_run(store, intervals=2), keep_run(store, intervals=3)
    target = store.path / "runs" / one / SEALED_FILE
    target.unlink()
    target.write_bytes((store.path / "runs" / other / SEALED_FILE).read_bytes())
    assert set(store.verify()) == {one}


def test_a_removed_run_leaves_the_index(store: Store) -> None:
    run = keep_run(store)
    shutil.rmtree(store.path / "runs" / run)
    assert Store(store.path).runs() == []


def test_a_removed_run_is_not_forgotten(store: Store) -> None:
    """Until it comes back, as from a backup; neither a rebuild nor a truncated line loses it."""
    run, other = keep_run(store), keep_run(store)
    [stored, _] = store.runs()
    shutil.copytree(store.path / "runs" / run, store.path / "backup")
    shutil.rmtree(store.path / "runs" / run)
    with (store.path / "removed.jsonl").open("a") as file:
        file.write('{"format": "fastenough-run", "ver')
    again = Store(store.path)
    assert again.rebuild() == {}
    assert again.removed() == again.removed(board=stored.board) == [stored]
    assert again.removed(board="another") == []
    shutil.rmtree(store.path / "runs" / other)
    assert [gone.id for gone in Store(store.path).removed()] == [run, other]
    (store.path / "backup").rename(store.path / "runs" / run)
    assert [gone.id for gone in Store(store.path).removed()] == [other]
    assert [kept.id for kept in Store(store.path).runs()] == [run]


@pytest.mark.parametrize("renamed", ["folder", "host"])
def test_a_run_removed_from_a_moved_store_is_not_forgotten(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: str
) -> None:
    """As in a copy, or in a container with a host name of its own."""
    run, other = keep_run(store), keep_run(store)
    store.close()
    path = store.path.rename(tmp_path / "moved") if renamed == "folder" else store.path
    monkeypatch.setattr("socket.gethostname", lambda: "another" if renamed == "host" else "this")
    shutil.rmtree(path / "runs" / other)
    moved = Store(path)
    assert [kept.id for kept in moved.runs()] == [run] and moved.find("last") == run
    assert [gone.id for gone in moved.removed()] == [other]


def test_a_run_removed_while_the_store_is_open_is_no_run_of_another_store(store: Store) -> None:
    run = keep_run(store)
    shutil.rmtree(store.path / "runs" / run)
    with pytest.raises(BadInput, match="deleted"):
        store.load(run)


def test_a_removed_run_stays_in_the_index_while_it_cannot_be_noted(store: Store) -> None:
    run = keep_run(store)
    shutil.rmtree(store.path / "runs" / run)
    (store.path / "removed.jsonl").symlink_to("/dev/full")
    assert [kept.id for kept in Store(store.path).runs()] == [run]
    (store.path / "removed.jsonl").unlink()
    later = Store(store.path)
    assert later.runs() == [] and [gone.id for gone in later.removed()] == [run]


def test_a_running_run_is_not_taken_for_dead(store: Store) -> None:
    writer = store.begin()
    writer.line(head(writer.id))
    other = Store(store.path)
    other.settle()
    assert [run.state for run in other.runs()] == ["running"]
    assert (writer.path / LIVE_FILE).exists()
    writer.line(end(Histogram(K), 2))
    writer.end()
    assert [run.state for run in other.runs()] == ["ended"]


def test_a_run_of_nothing_can_be_discarded(store: Store) -> None:
    writer = store.begin()
    writer.discard()
    assert list((store.path / "runs").iterdir()) == []
    assert Store(store.path).runs() == []


_WRITER = """
import sys
sys.path.insert(0, ".")
from pathlib import Path
from tests.process.store.test_store_runs import *
store = Store(Path(sys.argv[1]))
writer = store.begin()
print(writer.id, flush=True)
writer.line(head(writer.id))
for seq in range(100000):
    writer.line(interval(seq, HISTOGRAM))
    print(seq, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_killed_while_writing(tmp_path: Path, lines: int) -> None:
    bench = start_bench(_WRITER, str(tmp_path))
    assert bench.stdout is not None
    run = bench.stdout.readline().strip()
    for _ in range(lines):
        bench.stdout.readline()
    bench.send_signal(signal.SIGKILL)
    bench.communicate()
    store = Store(tmp_path)
    assert [(summary.id, summary.state) for summary in store.runs()] == [(run, "cut-off")]
    before = store.load(run)
    assert before.outcome is None
    assert len(before.intervals) >= lines
    assert all(part.histograms[0].total == HISTOGRAM.total for part in before.intervals)
    store.settle()
    assert (store.path / "runs" / run / SEALED_FILE).exists()
    assert len(store.load(run).intervals) == len(before.intervals)
    assert store.verify() == {}


def test_a_torn_last_line_is_no_line(store: Store) -> None:
    writer = store.begin()
    writer.line(head(writer.id))
    writer.line(interval(0, HISTOGRAM))
    writer.close()
    with (writer.path / LIVE_FILE).open("ab") as stream:
        stream.write(interval(1, HISTOGRAM)[:-20])
    assert len(store.load(writer.id).intervals) == 1
    store.settle()
    assert [run.state for run in store.runs()] == ["cut-off"]
    assert len(store.load(writer.id).intervals) == 1


_FULL_DISK = """
import os, sys
sys.path.insert(0, ".")
from pathlib import Path
from fastenough.model import FastenoughError
from tests.process.store.test_store_runs import *
place = Path(sys.argv[1])
store = Store(place, index_url="sqlite://")
kept = keep_run(store)
ballast = place / "ballast"
ballast.write_bytes(bytes(100_000))
writer = store.begin()
writer.line(head(writer.id))
written = 0
try:
    while True:
        writer.line(interval(written, HISTOGRAM))
        written += 1
except FastenoughError as error:
    assert "No space left" in str(error), error
    assert "\\n" not in str(error)
ballast.unlink()
writer.line(interval(written, HISTOGRAM))
written += 1
writer.close()
assert written > 1
assert len(store.load(writer.id).intervals) == written
assert store.load(kept).outcome is Outcome.COMPLETED
begun = set((place / "runs").iterdir())
try:
    for _ in range(1000):
        store.begin()
except FastenoughError as error:
    assert "No space left" in str(error), error
store.settle()
assert len(store.load(writer.id).intervals) == written
assert store.verify() == {}
print("good", written)
"""


def test_full_disk(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o size=512k none {tmp_path} && exec "$0" -c "$1" {tmp_path}'
    completed = subprocess.run(
        [*own_mounts(as_user=True), "sh", "-c", script, sys.executable, _FULL_DISK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stdout.startswith("good"), completed.stderr


def test_a_store_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot create a store"):
        Store(tmp_path / "file" / "store")


def test_a_wrong_index_setting(tmp_path: Path) -> None:
    for url in ("nonsense", "oracle+nothing://somewhere/x"):
        with pytest.raises(BadInput, match="give a database URL"):
            Store(tmp_path, index_url=url)


def test_two_stores_may_share_an_index(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.sqlite"
    one, other = Store(tmp_path / "one", url), Store(tmp_path / "other", url)
    first, second = keep_run(one), keep_run(other)
    assert [run.id for run in one.runs()] == [first, second]
    with pytest.raises(BadInput, match="is stored at"):
        one.load(second)
    one.rebuild()
    assert [run.id for run in other.runs()] == [first, second]


def test_an_index_in_memory_is_used_by_several_threads(tmp_path: Path) -> None:
    """In a folder that others may write into there is no other; a website asks it from each of its threads."""
    place = tmp_path / "store"
    Store(place).close()
    place.chmod(0o777)
    store = Store(place)
    assert not (place / "index.sqlite").exists() or store.index_fault is None
    with ThreadPoolExecutor(8) as threads:
        begun = [*threads.map(lambda _: store.begin(), range(24))]
        assert len({*threads.map(lambda one: store.find(one.id), begun)}) == 24
        asked = [*threads.map(lambda _: len(store.runs()), range(40))]
    assert asked == [24] * 40
    for one in begun:
        one.discard()


def test_what_is_made_without_a_umask_is_not_for_everybody_to_write(tmp_path: Path) -> None:
    for umask, mode in ((0, 0o755), (0o002, 0o775), (0o077, 0o700)):
        place = tmp_path / f"{umask:o}"
        subprocess.run(
            [sys.executable, "-m", "fastenough", "monitor", "pull", "--ring", str(tmp_path), "--store", str(place)],
            umask=umask,
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        assert place.stat().st_mode & 0o777 == mode
