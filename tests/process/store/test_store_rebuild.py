# SPDX-License-Identifier: GPL-2.0-or-later
"""Rebuilding the index of a store that others use at the same time, and dying in it."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from fastenough.folder import Folder
from fastenough.store import Store, index
from tests.process.store.test_store_listing import copies
from tests.process.store.test_store_runs import keep_run
from tests.support.cli_calls import environment, fastenough
from tests.support.index_statements import each_statement

pytestmark = pytest.mark.untimed

RUNS = 20
_LIST = """
import sys
from pathlib import Path
from fastenough.store import Store
least, faults, times = int(sys.argv[2]), [], 0
print("begun", flush=True)
while not Path(sys.argv[3]).exists():
    store = Store(Path(sys.argv[1]))
    if store.index_fault is not None or len(store.runs()) != least:
        faults.append((store.index_fault, len(store.runs())))
    times += 1
print(times, faults)
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    copies(made, keep_run(made), RUNS - 1)
    return Store(made.path)


def rebuilding(store: Store) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fastenough", "store", "rebuild", "--store", str(store.path)]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kept(store: Store) -> list[tuple[object, ...]]:
    """What the file of the index says, asked of SQLite itself, which must find it whole."""
    with closing(sqlite3.connect(store.path / "index.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute(f"SELECT * FROM runs_v{index.INDEX_VERSION} ORDER BY id").fetchall()


def ended(process: subprocess.Popen[str]) -> str:
    """What it said on standard error but for the wait; it must have rebuilt everything."""
    said, complained = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, f"index of {RUNS} runs rebuilt\n"), complained
    return "".join(line for line in complained.splitlines() if "waiting for another rebuild" not in line)


@pytest.mark.slow
def test_three_rebuilds_and_a_reader_at_once(store: Store, tmp_path: Path) -> None:
    expected, stop = kept(store), tmp_path / "stop"
    command = [sys.executable, "-c", _LIST, str(store.path), str(RUNS), str(stop)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "begun\n"
        for _ in range(2):
            assert [ended(process) for process in [rebuilding(store) for _ in range(3)]] == [""] * 3
        stop.touch()
        times, faults = reader.stdout.read().split(" ", 1)
    assert (int(times) > 0, faults) == (True, "[]\n")
    assert kept(store) == expected
    assert [run.id for run in Store(store.path).runs()] == sorted(path.name for path in (store.path / "runs").iterdir())


def test_one_of_three_is_killed(store: Store) -> None:
    expected = kept(store)
    chance = random.Random(5)
    for _ in range(2):
        processes = [rebuilding(store) for _ in range(3)]
        time.sleep(0.3 + chance.random())
        processes[0].kill()
        assert [ended(process) for process in processes[1:]] == ["", ""]
        processes[0].communicate()
        assert kept(store) == expected
        listed = fastenough("list", "--json", "--store", str(store.path), cwd=store.path)
        assert (len(json.loads(listed.stdout)), listed.stderr) == (RUNS, b"")


def test_a_rebuild_says_that_it_waits_and_then_works(store: Store) -> None:
    with Folder.at(store.path) as folder, folder.turn(lambda: pytest.fail("nobody else is there")):
        process = rebuilding(store)
        assert process.stderr is not None
        assert process.stderr.readline() == ("fastenough: waiting for another rebuild of this store to end\n")
        assert process.poll() is None
    assert ended(process) == ""


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"short", b""])
def test_an_index_that_is_none_makes_way(store: Store, content: bytes) -> None:
    expected = kept(store)
    (store.path / "index.sqlite").write_bytes(content)
    (store.path / "index.sqlite-journal").write_bytes(b"rest")
    assert Store(store.path).rebuild() == {}
    assert kept(store) == expected


def test_a_shared_index_is_never_half_empty(tmp_path: Path) -> None:
    """Who asks while it is rebuilt finds all runs: another connection, between any two statements."""
    url = f"sqlite:///{tmp_path}/shared.sqlite"
    store = Store(tmp_path / "store", url)
    copies(store, keep_run(store), RUNS - 1)
    store = Store(store.path, url)
    counted = []

    def count(*_: object) -> None:
        with closing(sqlite3.connect(tmp_path / "shared.sqlite", 0)) as other:
            counted.append(other.execute(f"SELECT count(*) FROM runs_v{index.INDEX_VERSION}").fetchone()[0])

    event.listen(Engine, "after_cursor_execute", count)
    try:
        store.rebuild()
    finally:
        event.remove(Engine, "after_cursor_execute", count)
    assert (set(counted), len(counted) > 2) == ({RUNS}, True)


def test_another_process_makes_the_first_index_in_the_same_moment(tmp_path: Path) -> None:
    """It looked for the table, there was none, and when it makes it there is one."""
    begun: list[str] = []
    faults: list[str | None] = []

    def overtake(statement: str) -> None:
        if statement.startswith("CREATE TABLE") and not begun:
            begun.append(statement)
            faults.append(Store(tmp_path / "store").index_fault)

    with each_statement(overtake):
        store = Store(tmp_path / "store")
    assert (len(begun), faults, store.index_fault) == (1, [None], None)
